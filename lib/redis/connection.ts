import type { RedisOptions } from 'ioredis';
import type { Clock, Timer } from '../core/clock.js';
import {
  closedEarly,
  type ConnectionProblem,
  type Endpoint,
  type Language,
  problemFrom,
  problemWith,
  reasonOf,
} from './connection-problem.js';
import type { RedisClient } from './redis-client.interface.js';
import type { MasterReply, UnreachableReply } from '../core/master.interface.js';
import { isReply, refusalFrom } from './replies.js';

// Bounds of the delay between two attempts to connect, in milliseconds.
const FIRST_RETRY = 50;
const LAST_RETRY = 500;
// In milliseconds. A peer that hangs does not close its side: a closed socket is then destroyed.
const DISCONNECT_WITHIN = 100;
// How often a server that is loading its data is asked whether it has finished, in milliseconds.
const LOADING_RETRY = 500;

// In milliseconds; randomized so that clients do not reconnect all at once.
export function backoff(attempt: number): number {
  const delay = Math.min(FIRST_RETRY * 2 ** (attempt - 1), LAST_RETRY);
  return Math.ceil(delay * (0.5 + Math.random()));
}

// What locks need on their connections, whatever the user's settings are. Above all, a command is sent at once or not
// at all, and never twice: a command that is sent later could acquire a lock whose caller no longer waits.
// Protocol 4.1
export const OWN_SETTINGS = Object.freeze({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // Commands in flight fail when the connection breaks, instead of staying pending.
  maxRetriesPerRequest: 0,
  // The algorithm enforces the time limits.
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  enableReadyCheck: true,
  maxLoadingRetryTime: LOADING_RETRY,
  enableAutoPipelining: false,
  // Key names already contain the prefix.
  keyPrefix: '',
  readOnly: false,
  retryStrategy: backoff,
  reconnectOnError: null,
  disconnectTimeout: DISCONNECT_WITHIN,
  autoResubscribe: false,
  monitor: false,
  scripts: undefined,
  stringNumbers: false,
  replyMapping: 'legacy' as const,
  showFriendlyErrorStack: false,
});

export function secretsOf({ password, sentinelPassword }: RedisOptions): readonly string[] {
  return [password, sentinelPassword].flatMap((secret) => secret || []);
}

// Time limit for a socket to close, in milliseconds.
const GONE_WITHIN = 1_000;
// In milliseconds, from accepting the connection until the server is ready for commands.
export const READY_WITHIN = 10_000;
// In milliseconds. A port that leaves the beginning of TLS unanswered for so long is examined.
const TLS_WITHIN = 1_000;
const NOT_CONNECTED: ConnectionProblem = { what: 'not connected yet' };
const BROKEN: ConnectionProblem = { what: 'the connection broke' };
const NOT_READY: ConnectionProblem = {
  what: 'connected, but the server is not ready: it hangs, or is loading its data',
};

interface ConnectionUser {
  // Identifies the server before any other request. Resolves with whether the server may be used. May reject.
  greet(): Promise<boolean>;
  // `isLate` if the connection was lost before, or an attempt to open it has failed.
  serve(isLate: boolean): void;
  // A problem that waiting cannot end was found. Called once until the connection can be used.
  onPermanentFailure(problem: ConnectionProblem): void;
  // A connection that could be used is lost. Not called if it was closed on purpose.
  lose(problem: ConnectionProblem): void;
  readonly languageOf?: ((endpoint: Endpoint) => Promise<Language | undefined>) | undefined;
}

export class Connection {
  readonly secrets: readonly string[];
  readonly usesTls: boolean;
  hasAnswered = false;
  private trouble: ConnectionProblem | undefined = NOT_CONNECTED;
  // Lasts from one attempt to the next, until one succeeds or fails in another way.
  private diagnosis: ConnectionProblem | undefined;
  // Or need not be, because the connection has worked.
  private isExamined = false;
  private isExamining = false;
  // The connection works, but with the wrong database.
  private misplaced = false;
  private closed = false;
  private isServing = false;
  private hasFailed = false;
  // The last problem that `onPermanentFailure` has reported since the connection could be used.
  private reported: string | undefined;
  private settled: (() => void) | undefined;
  private ended: (() => void) | undefined;
  private deadline: Timer | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly clock: Clock,
    private readonly user: ConnectionUser,
  ) {
    this.usesTls = Boolean(client.options.tls);
    this.secrets = secretsOf(client.options);
    client.on('connect', () => this.awaitReady());
    client.on('ready', () => this.becomeReady());
    client.on('error', (error) => this.fail(error));
    client.on('close', () => this.lose());
    client.on('end', () => this.end());
  }

  get problem(): ConnectionProblem | undefined {
    // The status of the client changes one turn of the event loop before the event.
    if (this.trouble === undefined && this.client.status !== 'ready') return BROKEN;
    return this.trouble;
  }

  // The answer to requests that cannot be sent.
  unreachable(place = ''): UnreachableReply | undefined {
    const { problem } = this;
    if (!problem) return undefined;
    const { isPermanent } = problem;
    return { kind: 'unreachable', reason: place + reasonOf(problem), sent: false, ...(isPermanent && { isPermanent }) };
  }

  // The answer to requests that failed. No secret and none of the tokens is in its reason, which begins with `place`.
  failure(error: unknown, tokens: readonly string[], place = ''): MasterReply {
    if (isReply(error)) return refusalFrom(error, [...this.secrets, ...tokens]);
    const { problem } = this;
    const reason = problem ? reasonOf(problem) : 'the connection broke before the answer came';
    return { kind: 'unreachable', reason: place + reason, sent: true };
  }

  // Keeps reopening the connection until `close`. Resolves when the first attempt has ended.
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.settled = resolve;
      this.connect();
    });
  }

  // The peer may have disappeared silently.
  reopen(why = 'no answer for long, connecting anew'): void {
    this.trouble = { what: why };
    this.drop();
  }

  // Tries again later, when what forbids the server may have changed.
  refuse(why: string): void {
    this.isServing = false;
    this.diagnosis = undefined;
    // The user of the connection knows this reason already.
    this.reported = why;
    this.note({ what: why, isPermanent: true });
    this.dropLater();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.trouble = { what: 'closed' };
    this.deadline?.cancel();
    this.isExamining = false;
    this.settle();
    await new Promise<void>((resolve) => {
      const timer = this.clock.schedule(GONE_WITHIN, resolve);
      this.ended = () => {
        timer.cancel();
        resolve();
      };
      const { status } = this.client;
      if (status !== 'end') this.client.disconnect();
      // Without a socket there is no event to wait for.
      if (status === 'end' || status === 'close' || status === 'reconnecting') this.ended();
    });
  }

  private connect(): void {
    // Events report the result.
    this.client.connect().catch(() => undefined);
    if (this.usesTls && !this.isExamined) {
      // A server without TLS may wait for the rest of what it takes for a command.
      this.deadline = this.clock.schedule(TLS_WITHIN, () => this.examine()).unref();
    }
  }

  private drop(): void {
    if (!this.closed) this.client.disconnect(true);
  }

  private dropLater(): void {
    this.deadline?.cancel();
    this.deadline = this.clock.schedule(backoff(Infinity), () => this.drop()).unref();
  }

  private awaitReady(): void {
    this.trouble = this.diagnosis ?? NOT_READY;
    this.hasAnswered = false;
    this.misplaced = false;
    this.limit();
  }

  private becomeReady(): void {
    this.deadline?.cancel();
    if (this.closed) return;
    if (this.misplaced) {
      this.dropLater();
      return;
    }
    this.hasAnswered = true;
    this.trouble = this.diagnosis ?? { what: 'connected, but not recognized yet' };
    this.limit();
    this.user.greet().then(
      (mayBeUsed) => this.serve(mayBeUsed),
      (error: unknown) => {
        this.fail(error);
        this.dropLater();
      },
    );
  }

  private limit(): void {
    this.deadline?.cancel();
    this.deadline = this.clock.schedule(READY_WITHIN, () => this.reopen()).unref();
  }

  private serve(mayBeUsed: boolean): void {
    if (mayBeUsed && !this.closed && this.client.status === 'ready') {
      this.deadline?.cancel();
      this.trouble = this.diagnosis = this.reported = undefined;
      this.isExamined = true;
      this.isExamining = false;
      this.settle();
      this.isServing = true;
      const isLate = this.hasFailed;
      this.hasFailed = false;
      this.user.serve(isLate);
    } else {
      this.settle();
    }
  }

  private fail(error: unknown): void {
    this.note(problemFrom(error, this));
    if (isAboutDatabase(error)) this.misplaced = true;
    // Not every error ends the connection, but after any error the connection cannot be trusted.
    if (this.client.status === 'ready') this.drop();
  }

  // A vague problem does not replace a diagnosis.
  private note(problem: ConnectionProblem): void {
    if (problem.isPermanent) this.diagnosis ??= problem;
    else if (!problem.isVague) this.diagnosis = undefined;
    this.trouble = this.diagnosis ?? problem;
    if (problem.isVague && !this.isExamined) this.examine();
    else this.settle();
  }

  private examine(): void {
    const { languageOf } = this.user;
    const { host, port, path, sentinels } = this.client.options;
    this.isExamined = true;
    if (!languageOf || !host || port === undefined || path || sentinels) {
      this.settle();
      return;
    }
    this.isExamining = true;
    void languageOf({ host, port }).then((language) => {
      const found = problemWith(language, this.usesTls);
      if (found && this.trouble && !this.closed) this.trouble = this.diagnosis = found;
      this.isExamining = false;
      this.settle();
    });
  }

  private lose(): void {
    const { trouble = BROKEN } = this;
    this.trouble = trouble;
    this.deadline?.cancel();
    if (trouble === NOT_READY) this.note(closedEarly(this.usesTls));
    else this.settle();
    if (this.isServing && !this.closed) this.user.lose(trouble);
    this.isServing = false;
    this.hasFailed = true;
  }

  // The client has given up, which it should only do when it is closed.
  private end(): void {
    this.lose();
    this.ended?.();
    if (this.closed) return;
    this.clock.schedule(backoff(Infinity), () => this.closed || this.connect()).unref();
  }

  private report(): void {
    const { diagnosis } = this;
    if (!diagnosis || this.closed || this.reported === reasonOf(diagnosis)) return;
    this.reported = reasonOf(diagnosis);
    this.user.onPermanentFailure(diagnosis);
  }

  private settle(): void {
    if (this.isExamining) return;
    this.report();
    this.settled?.();
    this.settled = undefined;
  }
}

// The client reports a connection as ready after SELECT failed, and it works on database 0.
function isAboutDatabase(error: unknown): boolean {
  const { command } = error as { command?: { name?: string } };
  return isReply(error) && command?.name === 'select';
}
