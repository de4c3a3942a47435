import { type Clock, Condition, type Instant } from './clock.js';
import type { Primitive } from './primitive.js';
import type { QuorumCall, SendRequest } from './quorum.js';
import type { Reply, RoundRequest, Server } from './server.js';
import type { Timing } from './validity.js';

// The same for all locks of one process.
export interface Rules {
  readonly masters: readonly Server[];
  readonly clock: Clock;
  readonly timing: Timing;
  readonly releases: PendingReleases;
}

// How an attempt asks the masters.
export interface Plan {
  readonly primitive: Primitive;
  // Read before the first request is sent and after all waiting: from then on, the validity counts.
  readonly since: Instant;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  // Absent if all masters are asked the same, and at once.
  readonly first?: First | undefined;
  // The master that learns last of the release, so that the waiter that it wakes finds the keys free on the others, too.
  readonly last?: Server | undefined;
}

// A master that is asked before the others. These are asked only if it grants: one of several attempts gets on.
export interface First {
  readonly master: Server;
  // What it is asked.
  readonly request: (token: string) => RoundRequest;
  // It has granted.
  readonly granted?: ((answer: Reply) => void) | undefined;
  // What asks each of the masters, if the others need not wait for its answer.
  readonly together?: ((toFirst: RoundRequest, toOthers: RoundRequest) => SendRequest) | undefined;
}

// One request to the masters.
export interface Round {
  readonly masters: readonly Server[];
  readonly request: RoundRequest;
  readonly timeout: number;
  // From when the validity counts if a quorum grants. Absent if nothing is decided by it, and in extensions, which `extend`
  // counts itself.
  readonly countsFrom?: Instant;
  readonly isExtension?: boolean | undefined;
  // `master.ask(request)` by default.
  readonly send?: SendRequest | undefined;
  // To the first master, if it differs from `request`.
  readonly requestToFirst?: RoundRequest | undefined;
  readonly now?: Instant;
}

// Called with a round that shows a loss.
export type TellLoss = (quorumCall: QuorumCall) => void;

// What an extension has led to.
export interface Extension {
  readonly extended: boolean;
  readonly quorumCall: QuorumCall;
}

// A round that some masters have not answered yet.
export interface SentRound extends Pick<Round, 'request' | 'requestToFirst' | 'isExtension'> {
  quorumCall: QuorumCall | undefined;
}

export function withdraw({ request, requestToFirst }: SentRound): void {
  request.withdrawn = true;
  if (requestToFirst) requestToFirst.withdrawn = true;
}

// Those that no quorum has answered yet.
export class PendingReleases {
  private pending = 0;
  private readonly none = new Condition(() => this.pending === 0);

  begin(): void {
    this.pending++;
  }

  end(): void {
    this.pending--;
    this.none.check();
  }

  settled(): Promise<void> {
    return this.none.met();
  }
}
