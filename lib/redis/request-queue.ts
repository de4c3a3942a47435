import { type Clock, Condition } from '../core/clock.js';
import type { ReplyCallback } from '../core/master.interface.js';
import { MAX_NAMES, MAX_CHARACTERS } from '../core/settings/resources.js';
import type { ServerRequest } from './request-encoding.js';

// In one command. A server does nothing else while it answers them, so their keys and characters are bounded, too.
const MAX_AT_ONCE = 128;
// A single master answers this many while the rest are still being sent; several masters leave the process no time to.
const MAX_AT_ONCE_ALONE = 32;
// A probe goes alone, because a server does not check its memory after the first write of a script, such as a release.
// A request for a state has a script of its own.
const ALONE: ReadonlySet<ServerRequest['op']> = new Set(['probe', 'open-state', 'write-state', 'read-state']);
// How long a master that closes waits for answers under way, in milliseconds.
const DRAIN_WITHIN = 500;

export interface PendingRequest {
  readonly request: ServerRequest;
  readonly reply: ReplyCallback;
}

export function tokensOf(asked: readonly PendingRequest[]): readonly string[] {
  return asked.flatMap(({ request }) => ('token' in request ? [request.token] : []));
}

interface RequestQueueOptions {
  readonly clock: Pick<Clock, 'afterTurn' | 'schedule'>;
  readonly isAlone: boolean;
  readonly send: (asked: readonly PendingRequest[]) => void;
}

// Gathers the requests of one turn of the event loop, so that they share one command.
// Protocol 4.8
export class RequestQueue {
  private readonly maxAtOnce: number;
  private asked: PendingRequest[] = [];
  private keys = 0;
  private characters = 0;
  private unanswered = 0;
  answers = 0;
  private wasAlone = true;
  private readonly answered = new Condition(() => this.unanswered === 0);

  constructor(private readonly options: RequestQueueOptions) {
    this.maxAtOnce = options.isAlone ? MAX_AT_ONCE_ALONE : MAX_AT_ONCE;
  }

  add(asked: PendingRequest): void {
    this.unanswered++;
    const isAlone = ALONE.has(asked.request.op);
    if (isAlone) this.flush();
    this.gather(asked);
    if (isAlone) this.flush();
    else if (this.asked.length === this.maxAtOnce) this.flush();
    // After a single request, the next one is likely to be single, too; if not, the rest goes together in the next command.
    else if (this.unanswered === 1 && this.wasAlone) this.flush();
    else if (this.asked.length === 1) this.options.clock.afterTurn(this.flush);
  }

  readonly flush = (): void => {
    const { asked } = this;
    if (asked.length === 0) return;
    this.asked = [];
    this.keys = this.characters = 0;
    this.wasAlone = asked.length === 1;
    this.options.send(asked);
  };

  get isWaiting(): boolean {
    return this.unanswered > 0;
  }

  // To be called once for each request that was added.
  noteAnswer(): void {
    this.unanswered--;
    this.answers++;
    this.answered.check();
  }

  // Resolves when every request is answered, or after the limit.
  drain(): Promise<void> {
    return this.answered.metWithin(DRAIN_WITHIN, this.options.clock);
  }

  // A request that does not fit into the next command goes into the one after it.
  private gather(asked: PendingRequest): void {
    const { keys } = asked.request;
    let characters = 0;
    for (const key of keys) characters += key.length;
    if (this.keys + keys.length > MAX_NAMES || this.characters + characters > MAX_CHARACTERS) this.flush();
    this.asked.push(asked);
    this.keys += keys.length;
    this.characters += characters;
  }
}
