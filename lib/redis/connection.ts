import type { RedisOptions } from 'ioredis';
import type { Clock, Timer } from '../redlock/clock.js';
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
import type { MasterReply } from '../masters/master.interface.js';
import type { UnreachableReply } from '../redlock/server.js';
import { isReply, refusalFrom } from './replies.js';

// Bounds of the delay between two attempts to connect, in milliseconds. The first is short, because calls may wait for it.
const FIRST_RETRY = 10;
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

// In milliseconds. No server has a shorter idle time-out: an earlier end has another cause.
const IDLE_FOR = 1_000;
// Within this time in milliseconds, the first attempt to open an idle connection again is no news.
const REOPENS_WITHIN = 1_000;
// Time limit for a socket to close, in milliseconds.
const GONE_WITHIN = 1_000;
// In milliseconds, from accepting the connection until the server is ready for commands.
export const READY_WITHIN = 10_000;
// In milliseconds. A port that leaves the beginning of TLS unanswered for so long is examined.
const TLS_WITHIN = 1_000;
const REOPENING: readonly string[] = ['reconnecting', 'connecting', 'connect'];
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
  // What has to be changed was found, on the server or in the settings. Called once until the connection can be used.
  onDiagnosis(problem: ConnectionProblem): void;
  // A connection that could be used is lost. Not called if it was closed on purpose.
  lose(): void;
  // The same, but only if it mattered: a server may close a connection that is idle, and the next attempt opens it again.
  report(problem: ConnectionProblem): void;
  // No answer is awaited.
  isIdle(): boolean;
  readonly languageOf?: ((endpoint: Endpoint) => Promise<Language | undefined>) | undefined;
}

export class Connection {
  readonly usesTls: boolean;
  hasAnswered = false;
  // How often it could be used after it could not.
  number = 0;
  // Milliseconds that the first call over it took.
  greetedIn = 0;
  // When it could be used, by the monotonic clock of this process.
  private usableSince = Infinity;
  private trouble: ConnectionProblem | undefined = NOT_CONNECTED;
  // Lasts from one attempt to the next, until one succeeds or fails in another way.
  private diagnosis: ConnectionProblem | undefined;
  // Since the connection worked.
  private isExamined = false;
  private isExamining = false;
  // The connection works, but with the wrong database.
  private misplaced = false;
  private closed = false;
  private isServing = false;
  private hasFailed = false;
  // The last problem that `onDiagnosis` has reported since the connection could be used.
  private reported: string | undefined;
  private settled: (() => void) | undefined;
  // A loss that is not reported yet.
  private unreported: { readonly problem: ConnectionProblem; readonly timer: Timer } | undefined;
  // Calls have not waited yet for an attempt to open it again.
  private mayReopen = false;
  private reopening: Promise<void> | undefined;
  private endReopening: (() => void) | undefined;
  private ended: (() => void) | undefined;
  private deadline: Timer | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly clock: Clock,
    private readonly user: ConnectionUser,
  ) {
    this.usesTls = Boolean(client.options.tls);
    client.on('connect', () => this.awaitReady());
    client.on('ready', () => this.becomeReady());
    client.on('error', (error) => this.fail(error));
    client.on('close', () => this.lose());
    client.on('end', () => this.end());
  }

  // A password may be another one over the next connection.
  get secrets(): readonly string[] {
    return secretsOf(this.client.options);
  }

  get problem(): ConnectionProblem | undefined {
    // The status of the client changes one turn of the event loop before the event.
    if (this.trouble === undefined && this.client.status !== 'ready') return BROKEN;
    return this.trouble;
  }

  // The answer to requests that cannot be sent.
  unreachable(prefix = ''): UnreachableReply | undefined {
    const { problem } = this;
    if (!problem) return undefined;
    const { isPermanent } = problem;
    return {
      kind: 'unreachable',
      reason: prefix + reasonOf(problem),
      sent: false,
      ...(isPermanent && { isPermanent }),
    };
  }

  // The answer to requests of a round that began before this connection could be used: over the one before, the address
  // may have led to another server.
  // Protocol 8.5
  replaced(): UnreachableReply {
    return { kind: 'unreachable', reason: 'its connection is younger than the request', sent: false };
  }

  isYoungerThan(since: number): boolean {
    return this.usableSince > since;
  }

  // The answer to requests that failed. No secret and none of the tokens is in its reason, which begins with `prefix`.
  failure(error: unknown, tokens: readonly string[], prefix = ''): MasterReply {
    if (isReply(error)) return refusalFrom(error, [...this.secrets, ...tokens]);
    const { problem } = this;
    const reason = problem ? reasonOf(problem) : 'the connection broke before the answer came';
    return { kind: 'unreachable', reason: prefix + reason, sent: true };
  }

  // Keeps reopening the connection until `close`. Resolves when the first attempt has ended.
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.settled = resolve;
      this.connect();
    });
  }

  // Resolves when the next attempt to open a lost connection has succeeded or failed. It is awaited once for each loss, by
  // all calls of that time: in an outage, no other call waits.
  reopened(): Promise<void> | undefined {
    const { client, problem } = this;
    if (!problem || this.closed) return undefined;
    if (this.mayReopen && !problem.isPermanent && REOPENING.includes(client.status)) {
      this.mayReopen = false;
      this.reopening = new Promise((resolve) => (this.endReopening = resolve));
    }
    return this.reopening;
  }

  // The peer may have disappeared silently.
  reopen(): void {
    this.trouble = { what: 'no answer for long, connecting anew' };
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
    this.unreported?.timer.cancel();
    this.isExamining = false;
    this.settle();
    this.stopReopening();
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
    this.trouble = this.diagnosis ?? { what: 'connected, but not recognized yet' }; // @mutant calls-before-the-first
    this.limit();
    const since = this.clock.read().monotonic;
    this.user.greet().then(
      (mayBeUsed) => {
        this.greetedIn = this.clock.read().monotonic - since;
        this.serve(mayBeUsed);
      },
      (error: unknown) => {
        this.fail(error); // @mutant error-taken-for-an-answer
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
      this.isExamined = this.isExamining = false;
      this.settle();
      this.isServing = true;
      this.number++;
      this.usableSince = this.clock.read().monotonic;
      const isLate = this.hasFailed;
      this.hasFailed = false;
      this.unreported?.timer.cancel();
      this.unreported = undefined;
      this.mayReopen = true;
      this.user.serve(isLate);
      this.stopReopening();
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
    const wasServing = this.isServing;
    this.isServing = false;
    if (!wasServing) {
      this.reportLoss();
      this.hasFailed = true;
      this.stopReopening();
    } else if (!this.closed) {
      const timer = this.clock.schedule(REOPENS_WITHIN, () => this.reportLoss()).unref();
      this.unreported = { problem: trouble, timer };
      const age = this.clock.read().monotonic - this.usableSince;
      const mayBeNoNews = trouble === BROKEN && age >= IDLE_FOR && this.user.isIdle();
      this.user.lose();
      if (!mayBeNoNews) this.reportLoss();
    }
  }

  private reportLoss(): void {
    const { unreported } = this;
    if (!unreported) return;
    this.unreported = undefined;
    unreported.timer.cancel();
    this.hasFailed = true;
    this.user.report(unreported.problem);
  }

  private stopReopening(): void {
    this.endReopening?.();
    this.reopening = this.endReopening = undefined;
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
    this.reportLoss();
    this.user.onDiagnosis(diagnosis);
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
