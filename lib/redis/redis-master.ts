import { Keyspace } from '../core/keyspace.js';
import type { Clock } from '../core/clock.js';
import {
  type AcquireRequest,
  type DrawRequest,
  GRANTED,
  HELD,
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  type NotificationListener,
  type PickRequest,
  type Quarantine,
  type RefusedReply,
  type ReplyCallback,
  type UnreachableReply,
} from '../core/master.interface.js';
import { type BeatRequest, isNewLock, isPlain, type ServerRequest } from './request-encoding.js';
import { VIEW_AGE } from './cluster/views.js';
import { Connection } from './connection.js';
import { reasonOf } from './connection-problem.js';
import type { Announcement, GuardedServer, ServerRecord } from './guard/server-record.js';
import { placeholderUrlOf } from './doctor-command.js';
import { faultOf, isReply, LOST_DATA, parseServerIdentity, refusalFrom, type ServerIdentity } from './replies.js';
import { markArguments, type MarkerChange } from './guard/marker.js';
import { MissingPermissions } from './permissions.js';
import { Recognition } from './recognition.js';
import { isStateRequest, RedisOperator, type ServerOperator } from './redis-state.js';
import type { RedisClient, RedisMasterContext } from './redis-client.interface.js';
import type { RestartGuard } from './guard/restart-guard.js';
import { type PendingRequest, RequestQueue } from './request-queue.js';
import { type CalledServer, RECOGNIZED_ANEW, ServerCall, UNANNOUNCED } from './server-call.js';
import { MARK, PERMISSIONS, REPORT } from './scripts/lua.generated.js';
import { NotificationChannel } from './notification-channel.js';
import { PrimaryWatch } from './sentinel/primary-watch.js';
import type { SentinelGroup } from './sentinel/sentinel-group.js';

// The identity of a server that hangs is requested so many times, and then no more.
const MAX_READINGS = 3;

// There are six for each lock on three masters, and closures would need twice the memory.
class Question implements PendingRequest {
  constructor(
    private readonly master: RedisMaster,
    readonly request: ServerRequest,
    private readonly explained: ReplyCallback,
  ) {}

  reply(answer: MasterReply): void {
    this.master.explain(this.request, answer, this.explained);
  }
}

// A Redis or Valkey server. The requests of one turn of the event loop go to it in one command. It has no time limits:
// it answers when the server does, or when the connection ends.
export class RedisMaster implements Master, GuardedServer, CalledServer {
  readonly clock: Clock;
  readonly connection: Connection;
  readonly guard: RestartGuard | undefined;
  readonly data: ServerRecord | undefined;
  readonly keyspace: Keyspace;
  private readonly queue: RequestQueue;
  private listener: (() => void) | undefined;
  readonly recognition: Recognition;
  private readonly permissions: MissingPermissions;
  // The server's refusal of the last marker or announcement.
  private guardRefusal: RefusedReply | undefined;
  markRefusal: string | undefined;
  private readings = 0;
  private notifications: NotificationChannel | undefined;
  private closing: Promise<void> | undefined;
  readonly watch: PrimaryWatch | undefined;
  private answersSeen = 0;

  constructor(
    readonly name: string,
    readonly client: RedisClient,
    readonly context: RedisMasterContext,
    readonly isDurable = false,
    sentinels?: SentinelGroup,
  ) {
    this.clock = context.clock;
    this.queue = new RequestQueue({
      clock: context.clock,
      isAlone: context.isAlone ?? false,
      send: (asked) => this.send(asked),
    });
    this.keyspace = new Keyspace(context.settings.keyPrefix);
    this.guard = context.guard;
    this.data = context.guard?.add(this);
    this.permissions = new MissingPermissions({
      keyPrefix: context.settings.keyPrefix,
      marker: this.guard?.markerName,
      run: (trials) => this.evaluate(PERMISSIONS, [], [JSON.stringify(trials)]),
      refusalOf: (error) => (isReply(error) ? refusalFrom(error, this.connection.secrets) : undefined),
    });
    this.recognition = new Recognition({
      name,
      clock: context.clock,
      observer: context.observer,
      guard: this.guard,
      data: this.data,
      report: async () => {
        const marker = this.guard ? [this.guard.markerName] : [];
        try {
          // The time in the report begins a quarantine: no vote that counts was sent to the primary before it by then.
          if (this.guard) await this.watch?.require();
          return parseServerIdentity(await this.evaluate(REPORT, [], marker));
        } catch (error) {
          throw await this.permissions.named(error);
        }
      },
      load: (script) =>
        void client.call('script', ['LOAD', script.text]).then(
          () => this.permissions.note('script', undefined),
          (error: unknown) => this.permissions.note('script', error),
        ),
      isDurable,
      fsync: async () => {
        const reply: unknown = await client.call('config', ['GET', 'appendfsync']).catch(() => undefined);
        return Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : undefined;
      },
      refuse: (fault) => this.connection.refuse(fault),
      isConnected: () => this.isConnected,
      votes: () => !this.quarantine,
    });
    this.connection = new Connection(client, context.clock, {
      greet: () => this.recognition.run(),
      serve: (isLate) => this.serve(isLate),
      onPermanentFailure: (problem) => context.observer.masterRefused?.(name, reasonOf(problem)),
      lose: (problem) => this.lose(reasonOf(problem)),
      languageOf: context.languageOf,
    });
    this.watch = sentinels && this.watchPrimary(sentinels);
  }

  private watchPrimary({ views, connections }: SentinelGroup): PrimaryWatch {
    const { clock, observer } = this.context;
    return new PrimaryWatch({
      ...{ clock, views, isGuarded: this.data !== undefined },
      connectedTo: () => connections.keyOf(this.client.stream),
      isSilent: () => {
        const { answers, isWaiting } = this.queue;
        const isSilent = isWaiting && answers === this.answersSeen;
        this.answersSeen = answers;
        return isSilent || !this.isConnected;
      },
      reopen: (why) => this.reconnect(why),
      onDoubt: (doubt) => {
        if (!doubt) observer.masterVotesAgain?.(this.name);
        else observer.masterQuarantined?.(this.name, doubt.reason, doubt.remaining);
      },
    });
  }

  // In milliseconds: votes of the primary before it count so long.
  // Protocol 13.2
  get handover(): number {
    return this.watch ? VIEW_AGE + this.context.settings.masterTimeout : 0;
  }

  get placeholderUrl(): string {
    return placeholderUrlOf(this.client.options);
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    const problem = this.connection.unreachable();
    if (problem) {
      reply(problem);
      return;
    }
    if (isNewLock(request)) this.askForLock(request, reply);
    else if (request.op === 'probe') this.add(request, (answer) => void this.permissions.judge(answer).then(reply));
    else this.add(request, reply);
  }

  // What would be a new lock is not even sent to a master that does not vote: it could be granted there later.
  private askForLock(request: AcquireRequest | PickRequest | DrawRequest, reply: ReplyCallback): void {
    // Protocol 8.7
    const mayVote = this.data?.votes ?? true; // @mutant quarantined-votes-counted-2
    if (mayVote) {
      this.add(request, reply);
    } else if (this.recognition.current && request.op !== 'draw') {
      // A draw would carry a clock that was read before: the next round reads it anew.
      const again = (): void => {
        if (request.withdrawn) reply(LOST_DATA);
        else this.ask(request, reply);
      };
      this.recognition.current.then(again, again);
    } else {
      const quarantined = { kind: 'quarantined', sent: false, ...(this.quarantine ?? RECOGNIZED_ANEW) } as const;
      const cause = this.causeOf(request, quarantined);
      if (cause) void cause.then(reply);
      else reply(quarantined);
    }
  }

  identity(): MasterIdentity {
    const { lastReport, fault, risk } = this.recognition;
    const { run = '', version } = lastReport ?? {};
    const nonce = this.data?.nonce ?? '';
    // Without the permission for INFO, equal data on two addresses shows that they are one server.
    return {
      run: run || nonce || undefined,
      data: nonce || run || undefined,
      generation: this.data?.marker?.generation,
      version,
      fault,
      risk,
      quarantine: this.quarantine ?? this.watch?.quarantine,
    };
  }

  get isQuarantined(): boolean {
    return (this.data?.withholdsVotes ?? false) || this.watch?.quarantine !== undefined;
  }

  get isConnected(): boolean {
    return !this.closing && this.connection.problem === undefined;
  }

  async report(): Promise<ServerIdentity | undefined> {
    if (!this.isConnected || !this.guard || this.readings >= MAX_READINGS) return undefined;
    this.readings++;
    try {
      await this.watch?.require();
      const report = parseServerIdentity(await this.evaluate(REPORT, [], [this.guard.markerName]));
      if (faultOf(report) === undefined) return report;
    } catch (error) {
      this.noteGuardRefusal(error);
      throw error;
    } finally {
      this.readings--;
    }
    await this.recognition.run();
    return undefined;
  }

  async mark(report: ServerIdentity, change: MarkerChange): Promise<boolean | undefined> {
    if (!this.isConnected || !this.guard) return undefined;
    try {
      const reply = await this.evaluate(MARK, [this.guard.markerName], markArguments(report, change));
      this.guardRefusal = undefined;
      this.markRefusal = undefined;
      return reply === 1;
    } catch (error) {
      this.noteGuardRefusal(error);
      if (isReply(error) && this.guardRefusal) {
        const { code, reason } = this.guardRefusal;
        this.markRefusal = `${code} ${reason.replace(/\.$/, '')}`;
      }
      return undefined;
    }
  }

  beat(announcement: Announcement): Promise<number | undefined> {
    if (!this.isConnected) return Promise.resolve(undefined);
    const request: BeatRequest = {
      op: 'beat',
      keys: [],
      factor: 1 + this.context.settings.driftFactor,
      ...announcement,
    };
    return new Promise((resolve) => {
      const reply: ReplyCallback = (answer) => {
        // Without a ttl, nothing is written.
        if (answer.kind === 'granted' && announcement.ttl > 0) this.guardRefusal = undefined;
        resolve(answer.kind === 'granted' ? answer.fence : undefined);
      };
      this.add(request, reply);
      // Before what asks for a lock with this ttl.
      this.queue.flush();
    });
  }

  private noteGuardRefusal(error: unknown): void {
    if (isReply(error)) this.guardRefusal = refusalFrom(error, this.connection.secrets);
  }

  onVoting(): void {
    this.listener?.();
  }

  get quarantine(): Quarantine | undefined {
    return this.data?.withholdsVotes ? this.data.quarantineAt(this.clock.read()) : undefined; // @mutant quarantined-votes-counted-1
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    if (listener && !this.closing) {
      this.notifications ??= new NotificationChannel(this.client.duplicate(), waiter, listener, this.clock, (error) =>
        this.permissions.note('subscribe', error),
      );
      this.notifications.test();
    } else {
      this.notifications?.close();
      this.notifications = undefined;
    }
  }

  get operator(): ServerOperator {
    return new RedisOperator({
      problem: () => this.problem(),
      call: (command, args) => this.client.call(command, args),
      failure: (error, tokens) => this.connection.failure(error, tokens),
    });
  }

  get isListening(): boolean {
    return this.notifications?.isListening ?? false;
  }

  connect(): Promise<void> {
    return this.connection.open();
  }

  problem(): UnreachableReply | undefined {
    return this.connection.unreachable();
  }

  reconnect(why?: string): void {
    this.connection.reopen(why);
    this.notifications?.reconnect();
  }

  noteStandstill(): void {
    this.watch?.noteStandstill();
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  // Takes 1.5 seconds at most: half a second for answers under way, and a second for the connection to close.
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.notifications?.close();
    await this.queue.drain();
    this.guard?.close();
    this.watch?.close();
    await this.connection.close();
  }

  private send(asked: readonly PendingRequest[]): void {
    const problem = this.connection.unreachable();
    const [first, second] = asked;
    const alone = second ? undefined : first;
    if (problem) for (const one of asked) one.reply(problem);
    else if (alone && isStateRequest(alone.request)) new ServerCall(this, asked).runState(alone.request, alone);
    else if (alone && !this.data && isPlain(alone.request)) this.set(alone.request, alone);
    else new ServerCall(this, asked).run('evalsha');
  }

  // One lock at a time without a guard: the server answers this sooner than the script, which explains a refusal.
  // Protocol 4.2
  private set(request: AcquireRequest, asked: PendingRequest): void {
    this.client.call('set', [...request.keys, request.token, 'PX', String(Math.ceil(request.ttl)), 'NX']).then(
      (value) => {
        if (value !== null) asked.reply(GRANTED);
        else if (request.withdrawn) asked.reply(HELD);
        else new ServerCall(this, [asked]).run('evalsha');
      },
      (error: unknown) => asked.reply(this.connection.failure(error, [request.token])),
    );
  }

  private serve(isLate: boolean): void {
    if (isLate) this.context.observer.masterFound?.(this.name);
    this.listener?.();
  }

  private lose(reason: string): void {
    this.data?.noteDisconnect();
    this.guardRefusal = this.markRefusal = undefined;
    this.context.observer.masterLost?.(this.name, reason);
  }

  private evaluate(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.client.call('eval', [script, keys.length, ...keys, ...args]);
  }

  private add(request: ServerRequest, reply: ReplyCallback): void {
    this.queue.add(new Question(this, request, reply));
  }

  explain(request: ServerRequest, answer: MasterReply, reply: ReplyCallback): void {
    const cause = answer.kind === 'granted' || answer.kind === 'held' ? undefined : this.causeOf(request, answer);
    if (cause) void cause.then((explained) => this.deliver(explained, reply));
    else this.deliver(answer, reply);
  }

  // In this order: what the reply asks for next is gathered while this request still counts as unanswered.
  private deliver(answer: MasterReply, reply: ReplyCallback): void {
    reply(answer);
    this.queue.noteAnswer();
  }

  // What the server refuses behind an answer; `undefined` if the answer needs no explanation.
  private causeOf({ op }: ServerRequest, answer: MasterReply): Promise<MasterReply> | undefined {
    if (answer.kind === 'refused' && op === 'beat') this.guardRefusal = answer;
    if (answer.kind === 'refused' && answer.code === 'NOPERM') return this.permissions.explain(answer);
    if (answer === LOST_DATA) return this.permissions.causeOf(answer);
    const { guardRefusal } = this;
    if (answer.kind !== 'quarantined' || !guardRefusal) return undefined;
    const isSymptom = answer.reason === UNANNOUNCED.reason || this.data?.state === 'unknown';
    // A missing permission is looked for anew, and lost data is the reason of the quarantine itself.
    const isCause = isSymptom && guardRefusal.code !== 'NOPERM' && guardRefusal !== LOST_DATA;
    return isCause ? Promise.resolve(guardRefusal) : this.permissions.causeOf(answer);
  }
}
