import { Keyspace } from '../core/keyspace.js';
import type { Clock, Instant } from '../core/clock.js';
import type {
  AcquireRequest,
  MasterReply,
  DrawRequest,
  PickRequest,
  Master,
  MasterIdentity,
  Quarantine,
  ReplyCallback,
  MasterRequest,
  RefusedReply,
  UnreachableReply,
  NotificationListener,
} from '../core/master.interface.js';
import {
  type BeatRequest,
  grantsKeys,
  isCompared,
  isNewLock,
  isPlain,
  isVote,
  type RequestEncoder,
  type ServerRequest,
} from './request-encoding.js';
import { VIEW_AGE } from './cluster/views.js';
import { Connection } from './connection.js';
import { reasonOf } from './connection-problem.js';
import type { Announcement, GuardedServer, ServerRecord } from './guard/server-record.js';
import { placeholderUrlOf } from './doctor-command.js';
import {
  faultOf,
  isReply,
  LOST_DATA,
  millisecondsFrom,
  parseServerIdentity,
  refusalFrom,
  replyFrom,
  replyToSet,
  type ServerIdentity,
} from './replies.js';
import { markArguments, type MarkerChange } from './guard/marker.js';
import { MissingPermissions } from './permissions.js';
import { Recognition } from './recognition.js';
import {
  isStateRequest,
  OTHER_DATA,
  RedisOperator,
  runStateRequest,
  type ServerOperator,
  type StateRequest,
} from './redis-state.js';
import type { RedisClient, RedisMasterContext } from './redis-client.interface.js';
import type { RestartGuard } from './guard/restart-guard.js';
import { type PendingRequest, RequestQueue, tokensOf } from './request-queue.js';
import { EXTENDED_AFTER_HEAL, UNMARKED } from './scripts/constants.js';
import { MARK, PERMISSIONS, REPORT } from './scripts/lua.generated.js';
import { NotificationChannel } from './notification-channel.js';
import { PrimaryWatch } from './sentinel/primary-watch.js';
import type { SentinelGroup } from './sentinel/sentinel-group.js';

// How long `close` waits for answers under way, in milliseconds.
const CLOSE_WITHIN = 500;
// The identity of a server that hangs is requested so many times, and then no more.
const MAX_READINGS = 3;

const RECOGNIZED_ANEW: Quarantine = Object.freeze({ reason: 'its identity changed meanwhile', remaining: 1 });

const UNNAMED: Quarantine = Object.freeze({ reason: 'its sentinels name another primary', remaining: 1 });

const UNANNOUNCED: Quarantine = Object.freeze({ reason: 'it has not confirmed the ttl yet', remaining: 1 });

// A request is sent again so many times when the identity of its server is doubtful once more.
const MAX_ATTEMPTS = 3;

interface Batch {
  readonly asked: readonly PendingRequest[];
  readonly sent: Instant;
  // The history that the script compared; empty if it compared none.
  readonly history: string;
  // Of the data that the requests were meant for.
  readonly epoch: number;
  readonly primary: string | undefined;
}

type NotKnown = (unknown: readonly PendingRequest[], why: MasterReply) => void;

// A Redis or Valkey server. The requests of one turn of the event loop go to it in one command. It has no time limits:
// it answers when the server does, or when the connection ends.
export class RedisMaster implements Master, GuardedServer {
  private readonly clock: Clock;
  private readonly connection: Connection;
  private readonly guard: RestartGuard | undefined;
  private readonly data: ServerRecord | undefined;
  private readonly keyspace: Keyspace;
  private readonly encoder: RequestEncoder;
  private readonly queue: RequestQueue;
  private listener: (() => void) | undefined;
  private readonly recognition: Recognition;
  private readonly permissions: MissingPermissions;
  // The server's refusal of the last marker or announcement.
  private guardRefusal: RefusedReply | undefined;
  markRefusal: string | undefined;
  private readings = 0;
  private notifications: NotificationChannel | undefined;
  private closing: Promise<void> | undefined;
  private readonly watch: PrimaryWatch | undefined;
  private answersSeen = 0;

  constructor(
    readonly name: string,
    private readonly client: RedisClient,
    private readonly context: RedisMasterContext,
    readonly isDurable = false,
    sentinels?: SentinelGroup,
  ) {
    this.clock = context.clock;
    this.encoder = context.encoder;
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
    const problem = this.problem();
    if (problem) {
      reply(problem);
      return;
    }
    if (isNewLock(request)) this.askForLock(request, reply);
    else this.queue.add({ request, reply: request.op === 'probe' ? this.judged(reply) : reply });
  }

  private judged(reply: ReplyCallback): ReplyCallback {
    return (answer) => void this.permissions.judge(answer).then(reply);
  }

  // What would be a new lock is not even sent to a master that does not vote: it could be granted there later.
  private askForLock(request: AcquireRequest | PickRequest | DrawRequest, reply: ReplyCallback): void {
    // Protocol 8.7
    const mayVote = this.data?.votes ?? true; // @mutant quarantined-votes-counted-2
    if (mayVote) {
      this.queue.add({ request, reply });
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
      this.queue.add({ request, reply });
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

  private get quarantine(): Quarantine | undefined {
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

  connect(): Promise<void> {
    return this.connection.open();
  }

  problem(): UnreachableReply | undefined {
    const problem = this.connection.problem;
    if (!problem) return undefined;
    const { isPermanent } = problem;
    return { kind: 'unreachable', reason: reasonOf(problem), sent: false, ...(isPermanent && { isPermanent }) };
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
    await this.queue.drain(CLOSE_WITHIN);
    this.guard?.close();
    this.watch?.close();
    await this.connection.close();
  }

  private send(asked: readonly PendingRequest[]): void {
    const problem = this.problem();
    const [first] = asked;
    if (problem) this.answerAll(asked, () => problem);
    else if (first && isStateRequest(first.request)) this.sendState(first.request, first);
    else if (asked.length === 1 && first && isPlain(first.request) && !this.data) this.set(first.request, first);
    else this.runScript(asked);
  }

  // One lock at a time without a guard: the server answers this sooner than the script, which explains a refusal.
  // Protocol 4.2
  private set(request: AcquireRequest, asked: PendingRequest): void {
    this.client.call('set', [...request.keys, request.token, 'PX', String(Math.ceil(request.ttl)), 'NX']).then(
      (value) =>
        value === null && !request.withdrawn ? this.runScript([asked]) : this.answer(asked, replyToSet(value)),
      (error: unknown) => this.answer(asked, this.failure(error, [asked])),
    );
  }

  private sendState(request: StateRequest, asked: PendingRequest): void {
    const server = {
      marker: this.guard || this.context.readsMarkers ? this.keyspace.marker : '',
      run: this.recognition.lastReport?.run ?? '',
      replid: this.data?.replid ?? '',
    };
    const evaluate = (script: string, args: readonly (string | number)[]): Promise<unknown> =>
      this.evaluate(script, [], args);
    const sent = this.clock.read();
    const batch = { sent, epoch: this.data?.epoch ?? 0, primary: this.namedPrimary(sent) };
    runStateRequest(request, server, evaluate).then(
      (answer) => {
        // Otherwise the next request would learn no more, and be refused as well.
        if (answer === OTHER_DATA) this.recognition.run().catch(() => undefined);
        const counted = this.onceNamed(asked, answer, batch);
        if (counted) this.answer(asked, counted);
      },
      (error: unknown) => this.answer(asked, this.failure(error, [asked])),
    );
  }

  private runScript(asked: readonly PendingRequest[]): void {
    this.run(asked, 'evalsha', (unknown, why) => this.runAgain(unknown, why));
  }

  // `notKnown`: the server does not know the script, or not the marker any more.
  private run(asked: readonly PendingRequest[], command: 'evalsha' | 'eval', notKnown: NotKnown): void {
    const { data, guard } = this;
    const { counters } = this.keyspace;
    const { script } = this.recognition;
    const requests = asked.map(({ request }) => request);
    const parts = this.encoder.encode(requests, this.notifications?.isListening ?? false);
    const known = command === 'eval' ? script.text : script.sha1;
    const sent = this.clock.read();
    const history = data?.historyToCompare(sent) ?? '';
    const marker = guard?.markerName ?? '';
    const parameters = [known, '0', marker, data?.nonce ?? '', history, counters, ...parts];
    const batch: Batch = { asked, sent, history, epoch: data?.epoch ?? 0, primary: this.namedPrimary(sent) };
    this.client.call(command, parameters).then(
      (values) => this.read(batch, values as readonly unknown[], notKnown),
      (error: unknown) => {
        const answer = this.failure(error, asked);
        if (isUnknownScript(error))
          notKnown(asked, answer); // @mutant noscript-taken-as-reload
        else this.answerAll(asked, () => answer);
      },
    );
  }

  private namedPrimary(sent: Instant): string | undefined {
    if (!this.watch || !this.data) return undefined;
    this.watch.refresh(sent);
    return this.watch.key;
  }

  // `undefined` while only the sentinels can say whether the answer counts: then it is given as soon as they have.
  private onceNamed(
    one: PendingRequest,
    answer: MasterReply,
    { sent, epoch, primary }: Pick<Batch, 'sent' | 'epoch' | 'primary'>,
  ): MasterReply | undefined {
    const { watch, data } = this;
    if (!watch || !data || answer.kind !== 'granted' || !countsIfNamed(one.request)) return answer;
    if (watch.isConfirmed(primary, sent)) return answer;
    void watch.confirm(primary, sent).then((isConfirmed) => {
      const isCurrent = isConfirmed && epoch === data.epoch;
      const doubt = watch.quarantine ?? (isConfirmed ? RECOGNIZED_ANEW : UNNAMED);
      this.answer(one, isCurrent ? answer : { kind: 'quarantined', sent: true, ...doubt });
    });
    return undefined;
  }

  private read(batch: Batch, values: readonly unknown[], notKnown: NotKnown): void {
    const { asked, sent, history, epoch } = batch;
    const time = values[asked.length];
    // Only the script of such a request has looked at the marker.
    const isMarked = !values.includes(UNMARKED) && asked.some(({ request }) => isCompared(request));
    if (history !== '' && isMarked) this.data?.noteComparison(history, sent);
    // Any other answer may be that of another server, whose clock shows another time.
    const mayCount = epoch === (this.data?.epoch ?? 0) && (!isMarked || this.checkClock(sent, time));
    const received = this.data && this.clock.read();
    if (received && time !== undefined) this.guard?.contacted(received.monotonic);
    const quarantine = this.quarantine ?? (mayCount ? undefined : RECOGNIZED_ANEW);
    const isChecking = this.data?.state === 'checking';
    const unknown: PendingRequest[] = [];
    const exchange = received && { sent, received };
    this.answerAll(asked, (one, i) => {
      const value = values[i];
      // While the identity of the data is checked, an answer counts for nothing: the request is repeated with its token.
      // A key that was set again is there at the repetition: its answer must not hide that.
      const isInDoubt = !mayCount && isChecking && grantsKeys(one.request) && value !== EXTENDED_AFTER_HEAL;
      if (value === UNMARKED || isInDoubt) {
        unknown.push(one);
        return undefined;
      }
      const reply = judge(one.request, isReply(value) ? this.failure(value, [one]) : replyFrom(value), quarantine);
      return exchange ? this.onceNamed(one, this.unlessUnconfirmed(one.request, reply, exchange), batch) : reply;
    });
    if (unknown.length > 0) notKnown(unknown, LOST_DATA);
  }

  // A grant whose ttl the server has not confirmed does not count: the quarantine of another could be too short.
  private unlessUnconfirmed(
    request: ServerRequest,
    reply: MasterReply,
    { sent, received }: { readonly sent: Instant; readonly received: Instant },
  ): MasterReply {
    const { data, guard } = this;
    if (!data || !guard || reply.kind !== 'granted') return reply;
    if (request.op === 'beat') data.confirmTtl(request.ttl, sent);
    // Protocol 8.9
    if (!grantsKeys(request) || data.knewTtl(request.ttl, received)) return reply;
    guard.ttls.repeat();
    return { kind: 'quarantined', sent: true, ...UNANNOUNCED };
  }

  private checkClock(sent: Instant, time: unknown): boolean {
    if (!this.guard || !this.data || time === undefined) return true;
    return this.guard.sampled(this.data, sent, millisecondsFrom(time)); // @mutant clock-of-a-server-not-looked-at
  }

  // A server that does not know the script, which belongs to one run of it, may be another one, or have lost its data:
  // it has to identify itself before it is asked again.
  // Protocol 8.1
  private runAgain(asked: readonly PendingRequest[], why: MasterReply, attempt = 1): void {
    const before = this.recognition.lastReport?.run;
    const nonce = this.data?.nonce;
    this.data?.check();
    this.recognition.noteDoubt();
    const goOn = (): void => {
      const problem = this.problem();
      const { quarantine } = this;
      const isOther = this.recognition.lastReport?.run !== before || this.data?.nonce !== nonce;
      // Another server over the same connection may be one that has a vote already.
      if (isOther && !problem) this.listener?.();
      const again: PendingRequest[] = [];
      this.answerAll(asked, (one) => {
        const { request } = one;
        // What has been withdrawn was followed by its release already: sent again, it would come after it.
        if ('withdrawn' in request && request.withdrawn) return why;
        if (problem) return problem;
        if (isOther && !quarantine && request.op !== 'release') return why;
        if (quarantine && isNewLock(request)) return { kind: 'quarantined', sent: true, ...quarantine };
        again.push(one);
        return undefined;
      });
      // Known again: with its text, since it may not have been allowed to load the script.
      const notKnown: NotKnown = (unknown, reason) => {
        if (attempt < MAX_ATTEMPTS) this.runAgain(unknown, reason, attempt + 1);
        else this.answerAll(unknown, () => reason);
      };
      if (again.length > 0) this.run(again, 'eval', notKnown);
    };
    this.recognition.run().then(goOn, goOn);
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

  private failure(error: unknown, asked: readonly PendingRequest[]): MasterReply {
    return this.connection.failure(error, tokensOf(asked));
  }

  private answerAll(
    asked: readonly PendingRequest[],
    answerTo: (one: PendingRequest, index: number) => MasterReply | undefined,
  ): void {
    asked.forEach((one, i) => {
      const answer = answerTo(one, i);
      if (answer) this.answer(one, answer);
    });
  }

  private answer(one: PendingRequest, answer: MasterReply): void {
    const cause = answer.kind === 'granted' || answer.kind === 'held' ? undefined : this.causeOf(one.request, answer);
    if (cause) void cause.then((found) => this.deliver(one, found));
    else this.deliver(one, answer);
  }

  private deliver({ reply }: PendingRequest, answer: MasterReply): void {
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

// A grant of a master that may have forgotten others does not count.
function judge(request: ServerRequest, answer: MasterReply, quarantine: Quarantine | undefined): MasterReply {
  // Protocol 8.7
  return quarantine && isVote(request) && answer.kind === 'granted'
    ? { kind: 'quarantined', sent: true, ...quarantine }
    : answer;
}

// Votes, states, and ttls that other masters rely on.
function countsIfNamed(request: ServerRequest): boolean {
  return isVote(request) || isStateRequest(request) || (request.op === 'beat' && request.ttl > 0);
}

function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}
