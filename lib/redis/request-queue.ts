import { type Clock, Condition } from '../redlock/clock.js';
import type { MasterReply, MasterRequest } from '../masters/master.interface.js';
import { MAX_NAMES, MAX_CHARACTERS } from '../settings/resources.js';
import type { Settings } from '../settings/settings.js';
import { TimeLimit } from '../redlock/time-limit.js';
import type { Connection } from './connection.js';

// In one command. A server does nothing else while it answers them, so their keys and characters are bounded, too.
const MAX_AT_ONCE = 128;
// A single master answers this many while the rest are still being sent; several masters leave the process no time to.
const MAX_AT_ONCE_ALONE = 32;
// A probe goes alone, because a server does not check its memory after the first write of a script, such as a release.
// A request for a state has a script of its own.
const ALONE: ReadonlySet<MasterRequest['op']> = new Set(['probe', 'open-state', 'write-state', 'read-state']);
// How long a master that closes waits for answers under way, in milliseconds.
const DRAIN_WITHIN = 500;
// In milliseconds, and in times of `masterTimeout` and of the first call over the connection: if something was asked, and
// nothing has arrived for the longest of them, the peer may have vanished unnoticed.
const SILENT_AFTER = 1_000;
const SILENT_AFTER_TIMES = 4;

export interface PendingRequest {
  readonly request: MasterRequest;
  reply(answer: MasterReply): void;
}

export function tokensOf(asked: readonly PendingRequest[]): readonly string[] {
  return asked.flatMap(({ request }) => ('token' in request ? [request.token] : []));
}

interface RequestQueueOptions {
  readonly clock: Clock;
  readonly isAlone: boolean;
  readonly settings: Pick<Settings, 'masterTimeout'>;
  readonly connection: Pick<Connection, 'greetedIn' | 'problem' | 'reopen'>;
  readonly send: (asked: readonly PendingRequest[]) => void;
}

// Gathers the requests of one turn of the event loop, so that they share one command, and replaces a connection over which
// no answer to any of them arrives.
// Protocol 4.7 and 4.8
export class RequestQueue {
  private readonly maxAtOnce: number;
  private asked: PendingRequest[] = [];
  private keys = 0;
  private characters = 0;
  private unanswered = 0;
  // Of all requests so far.
  private answers = 0;
  // Present while something is asked, and for a while after that: one timer for any number of requests.
  private watch: TimeLimit | undefined;
  private isClosing = false;
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
    if (!this.watch && !this.isClosing) this.beginWatch();
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
    this.isClosing = true;
    this.watch?.cancel();
    return this.answered.metWithin(DRAIN_WITHIN, this.options.clock);
  }

  private beginWatch(): void {
    const { answers } = this;
    const { clock, connection, settings } = this.options;
    const limit = Math.max(SILENT_AFTER, SILENT_AFTER_TIMES * Math.max(settings.masterTimeout, connection.greetedIn));
    const end = (): void => {
      this.watch = undefined;
      if (this.unanswered === 0 || connection.problem) return;
      if (this.answers === answers) connection.reopen();
      else this.beginWatch();
    };
    this.watch = new TimeLimit({ clock, limit, end }).unref();
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
