import type { Instant } from './clock.js';
import type { QuorumCall, SendRequest } from './quorum.js';
import type { RoundRequest, Server } from './server.js';

// One request to the masters.
export interface Round {
  readonly masters: readonly Server[];
  readonly request: RoundRequest;
  readonly timeout: number;
  // From when the validity counts if a quorum grants. Absent if nothing is decided by it, and in extensions, which `extend`
  // counts itself.
  readonly countsFrom?: Instant;
  readonly isExtension?: boolean | undefined;
  // Where `master.ask(request)` is not enough.
  readonly send?: SendRequest | undefined;
  // To the first master, if it differs from `request`.
  readonly requestToFirst?: RoundRequest | undefined;
  readonly now?: Instant;
}

// A round that some masters have not answered yet.
export interface SentRound extends Pick<Round, 'request' | 'requestToFirst' | 'isExtension'> {
  quorumCall: QuorumCall | undefined;
}

export function withdraw({ request, requestToFirst }: SentRound): void {
  request.withdrawn = true;
  if (requestToFirst) requestToFirst.withdrawn = true;
}

// So that the waiter that this master wakes finds the keys free on the others, too.
export function withLast(masters: readonly Server[], last: Server | undefined): readonly Server[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  const inOrder = masters.filter((master) => master !== last);
  inOrder.push(last);
  return inOrder;
}
