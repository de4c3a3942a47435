import type { Clock, Instant, Timer } from '../core/clock.js';
import type {
  AcquireRequest,
  Answer,
  Master,
  MasterIdentity,
  Reply,
  Request,
  Unreachable,
  WakeUp,
} from '../core/master.interface.js';
import { backoff } from './own-settings.js';
import type { RedisClient } from './redis-client.interface.js';
import { callOf } from './calls.js';
import { Recognition, type RedisMasterContext } from './recognition.js';
import { answerToScript, answerToSet, isReply, refusalFrom, tell, timeOf } from './replies.js';
import { UNMARKED } from './scripts.js';
import { WakeUps } from './wake-ups.js';

/** How long `close` waits for answers that are under way, in milliseconds. */
const CLOSE_WITHIN = 500;
/** How long it takes at most until a closed socket is gone, in milliseconds. */
const GONE_WITHIN = 1_000;
/** A server that accepts a connection gets this many milliseconds to become ready for commands. */
const READY_WITHIN = 10_000;

const NO_ANSWER = 'the connection broke before the answer came';

/**
 * One master: a Redis or Valkey server, over a connection that is used for nothing else.
 *
 * Time limits for answers are not its business: it answers when the server does, or when the connection ends.
 */
export class RedisMaster implements Master {
  /** Why there is no connection; `undefined` while there is one. */
  private trouble: string | undefined = 'not connected yet';
  /** The connection works, but not with the database that it was meant for. */
  private misplaced = false;
  private closed = false;
  private pending = 0;
  private listener: (() => void) | undefined;
  private settled: (() => void) | undefined;
  private drained: (() => void) | undefined;
  private ended: (() => void) | undefined;
  private handshake: Timer | undefined;
  private wakeUps: WakeUps | undefined;
  private readonly secrets: readonly string[];
  private readonly clock: Clock;
  private readonly recognition: Recognition;

  constructor(
    readonly name: string,
    private readonly client: RedisClient,
    context: RedisMasterContext,
  ) {
    this.clock = context.clock;
    this.recognition = new Recognition(name, context);
    const { password, sentinelPassword } = client.options;
    this.secrets = [password, sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
    client.on('connect', () => this.awaitReady());
    client.on('ready', () => this.becomeReady());
    client.on('error', (error) => this.fail(error));
    client.on('close', () => this.lose());
    client.on('end', () => this.end());
  }

  ask(request: Request, reply: Reply): void {
    const problem = this.problem();
    if (problem) reply(problem);
    else if (isPlain(request) && !this.recognition.mark) this.set(request, reply);
    else this.run(request, reply, 'EVALSHA', (why) => this.runAgain(request, reply, why));
  }

  identity(): MasterIdentity {
    return this.recognition.identity;
  }

  listen(waiter: string, listener: WakeUp | undefined): void {
    if (listener && !this.closed) {
      this.wakeUps ??= new WakeUps(this.client.duplicate(), waiter, listener, this.clock);
    } else {
      this.wakeUps?.close();
      this.wakeUps = undefined;
    }
  }

  connect(): Promise<void> {
    return new Promise((resolve) => {
      this.settled = resolve;
      this.open();
    });
  }

  problem(): Unreachable | undefined {
    // The client knows of a broken connection one turn before it tells.
    if (this.trouble === undefined && this.client.status === 'ready') return undefined;
    return { kind: 'unreachable', reason: this.trouble ?? 'the connection broke', sent: false };
  }

  reconnect(): void {
    this.trouble = 'no answer for long, connecting anew';
    this.drop();
    this.wakeUps?.reconnect();
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.wakeUps?.close();
    await this.within(CLOSE_WITHIN, (done) => {
      this.drained = done;
      if (this.pending === 0) done();
    });
    this.trouble = 'closed';
    this.handshake?.cancel();
    this.recognition.close();
    this.settle();
    await this.within(GONE_WITHIN, (done) => {
      this.ended = done;
      const { status } = this.client;
      if (status !== 'end') this.client.disconnect();
      // There is no socket that could tell its end.
      if (status === 'end' || status === 'close' || status === 'reconnecting') done();
    });
  }

  private set(request: AcquireRequest, reply: Reply): void {
    const args = [...request.keys, request.token, 'PX', Math.ceil(request.ttl), 'NX'];
    const finish = (value: unknown): void => reply(answerToSet(value));
    this.send('SET', args, finish, (error) => reply(this.failure(error, request)));
  }

  /** @param notKnown what to do if the server does not know the scripts, or not the marker any more */
  private run(request: Request, reply: Reply, command: 'EVALSHA' | 'EVAL', notKnown: (why: Answer) => void): void {
    const { scripts, mark } = this.recognition;
    const { script, keys, parameters } = callOf(request, scripts, mark, this.wakeUps?.isListening ?? false);
    const sent = this.clock.read();
    const finish = (value: unknown): void => {
      if (value === UNMARKED) notKnown({ kind: 'refused', code: 'UNMARKED', reason: 'its data was lost or replaced' });
      else reply(this.judge(request, answerToScript(value), sent, timeOf(value)));
    };
    const { sha1, text } = script;
    this.send(command, [command === 'EVAL' ? text : sha1, keys.length, ...keys, ...parameters], finish, (error) => {
      const answer = this.failure(error, request);
      if (isUnknownScript(error)) notKnown(answer);
      else reply(answer);
    });
  }

  /**
   * A server that does not know a script, which belongs to one run of it, may be another one, or have lost its data:
   * it has to say who it is before it is asked again.
   */
  private runAgain(request: Request, reply: Reply, why: Answer): void {
    const before = this.recognition.identity.run;
    const goOn = (): void => {
      const problem = this.problem();
      const { run, quarantine } = this.recognition.identity;
      const isOther = run !== before;
      // Another server over the same connection may be one that has a vote already.
      if (isOther && !problem) this.listener?.();
      // What has been withdrawn was followed by its release already: sent again, it would come after it.
      if ('withdrawn' in request && request.withdrawn) reply(why);
      else if (problem) reply(problem);
      else if (isOther && !quarantine && request.op !== 'release') reply(why);
      // Known again: with its text, since it may not have been allowed to load the script.
      else this.run(request, reply, 'EVAL', reply);
    };
    this.recognize().then(goOn, goOn);
  }

  /** A grant of a master that may have forgotten others does not count. */
  private judge(request: Request, answer: Answer, sent: Instant, time: number): Answer {
    if (answer.kind !== 'granted' || request.op === 'release' || request.op === 'leave') return answer;
    const ttl = 'ttl' in request ? request.ttl : 0;
    if (time > 0 && this.recognition.lookAtClock(sent, time, ttl)) this.recognize().catch(() => undefined);
    const { quarantine } = this.recognition;
    return quarantine && request.op !== 'inspect' ? { kind: 'quarantined', ...quarantine } : answer;
  }

  /** Asks the server who it is. */
  private async recognize(): Promise<void> {
    await this.recognition.run((script, keys, args) =>
      this.client.call('EVAL', [script, keys.length, ...keys, ...args]),
    );
    const { fault } = this.recognition.identity;
    if (fault !== undefined) {
      this.trouble = fault;
      this.dropLater();
      return;
    }
    // Nobody waits for these: the server carries them out before what is sent after them.
    for (const { text } of Object.values(this.recognition.scripts)) {
      this.client.call('SCRIPT', ['LOAD', text]).catch(() => undefined);
    }
  }

  private send(
    command: string,
    args: (string | number)[],
    succeed: (value: unknown) => void,
    fail: (error: unknown) => void,
  ): void {
    this.pending++;
    const settle = (): void => {
      if (--this.pending === 0) this.drained?.();
    };
    this.client.call(command, args).then(
      (value) => {
        succeed(value);
        settle();
      },
      (error: unknown) => {
        fail(error);
        settle();
      },
    );
  }

  private failure(error: unknown, request: Request): Answer {
    if (!isReply(error)) return { kind: 'unreachable', reason: this.trouble ?? NO_ANSWER, sent: true };
    return refusalFrom(error, 'token' in request ? [...this.secrets, request.token] : this.secrets);
  }

  private drop(): void {
    if (!this.closed) this.client.disconnect(true);
  }

  private open(): void {
    // How it ends is told by events.
    this.client.connect().catch(() => undefined);
  }

  private awaitReady(): void {
    this.trouble = 'connected, but the server is not ready: it hangs, or is loading its data';
    this.misplaced = false;
    this.handshake?.cancel();
    this.handshake = this.clock.schedule(READY_WITHIN, () => this.reconnect()).unref();
  }

  private becomeReady(): void {
    this.handshake?.cancel();
    if (this.closed) return;
    if (this.misplaced) {
      this.dropLater();
      return;
    }
    this.trouble = 'connected, but not recognized yet';
    this.handshake = this.clock.schedule(READY_WITHIN, () => this.reconnect()).unref();
    this.recognize().then(
      () => this.serve(),
      (error: unknown) => {
        this.fail(error);
        this.dropLater();
      },
    );
  }

  private serve(): void {
    if (this.closed || this.client.status !== 'ready' || this.recognition.identity.fault !== undefined) {
      this.settle();
      return;
    }
    this.handshake?.cancel();
    this.trouble = undefined;
    this.settle();
    this.listener?.();
  }

  /** What is wrong may have changed when we come back. */
  private dropLater(): void {
    this.handshake?.cancel();
    this.handshake = this.clock.schedule(backoff(Infinity), () => this.drop()).unref();
  }

  private fail(error: unknown): void {
    this.trouble = tell(error, this.secrets);
    if (isAboutDatabase(error)) this.misplaced = true;
    this.settle();
    // Not every error ends the connection, but none leaves one that can be trusted.
    if (this.client.status === 'ready') this.drop();
  }

  private lose(): void {
    this.trouble ??= 'the connection broke';
    this.handshake?.cancel();
    this.settle();
  }

  /** The client has given up, which it is only meant to do when it is closed. */
  private end(): void {
    this.lose();
    this.ended?.();
    if (this.closed) return;
    this.clock.schedule(backoff(Infinity), () => this.closed || this.open()).unref();
  }

  private settle(): void {
    this.settled?.();
    this.settled = undefined;
  }

  private within(limit: number, start: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.clock.schedule(limit, resolve);
      start(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}

/** A connection whose SELECT failed is offered as if nothing had happened, and works on database 0. */
function isAboutDatabase(error: unknown): boolean {
  const { command } = error as { command?: { name?: string } };
  return isReply(error) && command?.name === 'select';
}

/** What `SET ... NX` can do: it neither tells the remaining time nor draws a fencing token, nor takes several keys. */
function isPlain(request: Request): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.explain && !request.fence;
}
