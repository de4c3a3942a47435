import type { Clock, Instant } from '../core/clock.js';
import type {
  Answer,
  Master,
  MasterIdentity,
  Quarantine,
  Reply,
  Request,
  Unreachable,
  WakeUp,
} from '../core/master.interface.js';
import { MOST_NAMES, MOST_TEXT } from '../core/resources.js';
import { Connection } from './connection.js';
import { Recognition, type RedisMasterContext } from './recognition.js';
import type { RedisClient } from './redis-client.interface.js';
import { answerFrom, answerToSet, isReply, millisecondsFrom, refusalFrom } from './replies.js';
import { isPlain, type RequestEncoder } from './request-encoding.js';
import { UNMARKED } from './script-answers.js';
import { WakeUps } from './wake-ups.js';

/** How long `close` waits for answers that are under way, in milliseconds. */
const CLOSE_WITHIN = 500;
/** Requests in one command. A server does nothing else while it answers them, so their keys and texts are bounded, too. */
const MOST_AT_ONCE = 128;
/** A master that is alone answers so many while the rest are still being asked; several leave the process no time to. */
const MOST_AT_ONCE_ALONE = 32;

const NO_ANSWER = 'the connection broke before the answer came';
const LOST_DATA: Answer = Object.freeze({ kind: 'refused', code: 'UNMARKED', reason: 'its data was lost or replaced' });

interface Asked {
  readonly request: Request;
  readonly reply: Reply;
}

/**
 * One master: a Redis or Valkey server, over a connection that is used for nothing else.
 *
 * What is asked in one turn of the event loop goes to the server in one command. Time limits for answers are not its
 * business: it answers when the server does, or when the connection ends.
 */
export class RedisMaster implements Master {
  private readonly clock: Clock;
  private readonly connection: Connection;
  private readonly recognition: Recognition;
  private readonly encoder: RequestEncoder;
  private readonly mostAtOnce: number;
  private asked: Asked[] = [];
  /** Number of the keys in `asked`, and of their characters. */
  private keys = 0;
  private characters = 0;
  private unanswered = 0;
  /** Whether the last command held one request only. */
  private wasAlone = true;
  private drained: (() => void) | undefined;
  private listener: (() => void) | undefined;
  private wakeUps: WakeUps | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    readonly name: string,
    private readonly client: RedisClient,
    context: RedisMasterContext,
  ) {
    this.clock = context.clock;
    this.encoder = context.encoder;
    this.mostAtOnce = context.isAlone ? MOST_AT_ONCE_ALONE : MOST_AT_ONCE;
    this.recognition = new Recognition(name, context);
    this.connection = new Connection(client, context.clock, {
      greet: () => this.recognize(),
      serve: () => this.listener?.(),
    });
  }

  ask(request: Request, reply: Reply): void {
    const problem = this.problem();
    if (problem) {
      reply(problem);
      return;
    }
    this.unanswered++;
    this.add({ request, reply });
    if (this.asked.length === this.mostAtOnce) this.sendAll();
    // Who came alone last time is likely to be alone again; if not, the others go together in the next command.
    else if (this.unanswered === 1 && this.wasAlone) this.sendAll();
    else if (this.asked.length === 1) this.clock.afterTurn(this.sendAll);
  }

  identity(): MasterIdentity {
    return this.recognition.identity;
  }

  listen(waiter: string, listener: WakeUp | undefined): void {
    if (listener && !this.closing) {
      this.wakeUps ??= new WakeUps(this.client.duplicate(), waiter, listener, this.clock);
      this.wakeUps.test();
    } else {
      this.wakeUps?.close();
      this.wakeUps = undefined;
    }
  }

  connect(): Promise<void> {
    return this.connection.open();
  }

  problem(): Unreachable | undefined {
    const reason = this.connection.problem;
    return reason === undefined ? undefined : { kind: 'unreachable', reason, sent: false };
  }

  reconnect(): void {
    this.connection.reopen();
    this.wakeUps?.reconnect();
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.wakeUps?.close();
    await this.drain();
    this.recognition.close();
    await this.connection.close();
  }

  private drain(): Promise<void> {
    if (this.unanswered === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.clock.schedule(CLOSE_WITHIN, resolve);
      this.drained = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** What does not fit into the next command goes into the one after it. */
  private add(asked: Asked): void {
    const { keys } = asked.request;
    let characters = 0;
    for (const key of keys) characters += key.length;
    if (this.keys + keys.length > MOST_NAMES || this.characters + characters > MOST_TEXT) this.sendAll();
    this.asked.push(asked);
    this.keys += keys.length;
    this.characters += characters;
  }

  private readonly sendAll = (): void => {
    const { asked } = this;
    // Sent already, and nothing has been asked since.
    if (asked.length === 0) return;
    this.asked = [];
    this.keys = this.characters = 0;
    this.wasAlone = asked.length === 1;
    this.send(asked);
  };

  private send(asked: readonly Asked[]): void {
    const problem = this.problem();
    const [first] = asked;
    if (problem) this.answerAll(asked, () => problem);
    else if (asked.length === 1 && first && isPlain(first.request) && !this.recognition.mark) this.set(first);
    else this.run(asked, 'evalsha', (unknown, why) => this.runAgain(unknown, why));
  }

  private set(asked: Asked): void {
    const { keys, token, ttl } = asked.request as Extract<Request, { op: 'acquire' }>;
    this.client.call('set', [...keys, token, 'PX', String(Math.ceil(ttl)), 'NX']).then(
      (value) => this.answer(asked, answerToSet(value)),
      (error: unknown) => this.answer(asked, this.failure(error, [asked])),
    );
  }

  /** @param notKnown what to do if the server does not know the script, or not the marker any more */
  private run(
    asked: readonly Asked[],
    command: 'evalsha' | 'eval',
    notKnown: (unknown: readonly Asked[], why: Answer) => void,
  ): void {
    const { script, mark, counters } = this.recognition;
    const requests = asked.map(({ request }) => request);
    const parts = this.encoder.encode(requests, this.wakeUps?.isListening ?? false);
    const known = command === 'eval' ? script.text : script.sha1;
    const parameters = [known, '0', mark?.marker ?? '', mark?.nonce ?? '', counters, ...parts];
    const sent = this.clock.read();
    this.client.call(command, parameters).then(
      (values) => this.read(asked, values as readonly unknown[], sent, notKnown),
      (error: unknown) => {
        const answer = this.failure(error, asked);
        if (isUnknownScript(error)) notKnown(asked, answer);
        else this.answerAll(asked, () => answer);
      },
    );
  }

  private read(
    asked: readonly Asked[],
    values: readonly unknown[],
    sent: Instant,
    notKnown: (unknown: readonly Asked[], why: Answer) => void,
  ): void {
    this.lookAtClock(asked, sent, values[asked.length]);
    const { quarantine } = this.recognition;
    const unknown: Asked[] = [];
    this.answerAll(asked, (one, i) => {
      const value = values[i];
      if (value === UNMARKED) {
        unknown.push(one);
        return undefined;
      }
      return judge(one.request, isReply(value) ? this.failure(value, [one]) : answerFrom(value), quarantine);
    });
    if (unknown.length > 0) notKnown(unknown, LOST_DATA);
  }

  /** If the server's clock jumped ahead, its keys expired early: it is asked who it is, so that all learn of that. */
  private lookAtClock(asked: readonly Asked[], sent: Instant, time: unknown): void {
    if (time === undefined) return;
    let ttl = Infinity;
    for (const { request } of asked) if (request.op === 'acquire' && request.ttl < ttl) ttl = request.ttl;
    if (this.recognition.lookAtClock(sent, millisecondsFrom(time), ttl)) this.recognize().catch(() => undefined);
  }

  /**
   * A server that does not know the script, which belongs to one run of it, may be another one, or have lost its data:
   * it has to say who it is before it is asked again.
   */
  private runAgain(asked: readonly Asked[], why: Answer): void {
    const before = this.recognition.identity.run;
    const goOn = (): void => {
      const problem = this.problem();
      const { run, quarantine } = this.recognition.identity;
      const isOther = run !== before;
      // Another server over the same connection may be one that has a vote already.
      if (isOther && !problem) this.listener?.();
      const again: Asked[] = [];
      this.answerAll(asked, (one) => {
        const { request } = one;
        // What has been withdrawn was followed by its release already: sent again, it would come after it.
        if ('withdrawn' in request && request.withdrawn) return why;
        if (problem) return problem;
        if (isOther && !quarantine && request.op !== 'release') return why;
        again.push(one);
        return undefined;
      });
      // Known again: with its text, since it may not have been allowed to load the script.
      if (again.length > 0) this.run(again, 'eval', (unknown, reason) => this.answerAll(unknown, () => reason));
    };
    this.recognize().then(goOn, goOn);
  }

  /** Asks the server who it is, and tells whether it may be used. */
  private async recognize(): Promise<boolean> {
    await this.recognition.run((script, keys, args) =>
      this.client.call('eval', [script, keys.length, ...keys, ...args]),
    );
    const { fault } = this.recognition.identity;
    if (fault !== undefined) {
      this.connection.refuse(fault);
      return false;
    }
    // Nobody waits for this: the server carries it out before what is sent after it.
    this.client.call('script', ['LOAD', this.recognition.script.text]).catch(() => undefined);
    return true;
  }

  private failure(error: unknown, asked: readonly Asked[]): Answer {
    if (!isReply(error)) return { kind: 'unreachable', reason: this.connection.problem ?? NO_ANSWER, sent: true };
    const tokens = asked.flatMap(({ request }) => ('token' in request ? [request.token] : []));
    return refusalFrom(error, [...this.connection.secrets, ...tokens]);
  }

  /** @param answerTo gives `undefined` for a request that is not answered yet */
  private answerAll(asked: readonly Asked[], answerTo: (one: Asked, index: number) => Answer | undefined): void {
    asked.forEach((one, i) => {
      const answer = answerTo(one, i);
      if (answer) this.answer(one, answer);
    });
  }

  private answer({ reply }: Asked, answer: Answer): void {
    reply(answer);
    if (--this.unanswered === 0) this.drained?.();
  }
}

/** A grant of a master that may have forgotten others does not count. */
function judge({ op }: Request, answer: Answer, quarantine: Quarantine | undefined): Answer {
  const isVote = op === 'acquire' || op === 'extend' || op === 'confirm';
  return quarantine && isVote && answer.kind === 'granted' ? { kind: 'quarantined', ...quarantine } : answer;
}

function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}
