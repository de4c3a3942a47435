import { Keyspace } from '../settings/keyspace.js';
import type { Clock, Timer } from '../redlock/clock.js';
import {
  type AcquireRequest,
  GRANTED,
  HELD,
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  type NotificationListener,
  type ReplyCallback,
} from '../masters/master.interface.js';
import type { Quarantine, UnreachableReply } from '../redlock/server.js';
import { isPlain } from './request-encoding.js';
import { Connection } from './connection.js';
import { reasonOf } from './connection-problem.js';
import { placeholderUrlOf } from './doctor-command.js';
import { isReply, parseServerIdentity, refusalFrom, type ServerIdentity, UNEXPECTED } from './replies.js';
import { MissingPermissions } from './permissions.js';
import { Recognition } from './recognition.js';
import { isStateRequest, RedisOperator, type ServerOperator } from './redis-state.js';
import type { RedisClient, RedisMasterContext } from './redis-client.interface.js';
import { RestartGate } from './restart-gate.js';
import { type PendingRequest, RequestQueue } from './request-queue.js';
import { type CalledServer, ServerCall } from './server-call.js';
import { LOCKS, PERMISSIONS, REPORT } from './scripts/lua.generated.js';
import { NotificationChannel } from './notification-channel.js';

// There are six for each lock on three masters, and closures would need twice the memory.
class Question implements PendingRequest {
  constructor(
    private readonly master: RedisMaster,
    readonly request: MasterRequest,
    private readonly explained: ReplyCallback,
  ) {}

  reply(answer: MasterReply): void {
    this.master.explain(answer, this.explained);
  }
}

// A Redis or Valkey server. The requests of one turn of the event loop go to it in one command. It has no time limits:
// it answers when the server does, or when the connection ends.
export class RedisMaster implements Master, CalledServer {
  readonly clock: Clock;
  readonly connection: Connection;
  readonly gate: RestartGate | undefined;
  readonly keyspace: Keyspace;
  private readonly queue: RequestQueue;
  private listener: (() => void) | undefined;
  private readonly recognition: Recognition;
  private readonly permissions: MissingPermissions;
  private notifications: NotificationChannel | undefined;
  // Reported to observers.
  private isWaiting = false;
  private wait: Timer | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    readonly name: string,
    readonly client: RedisClient,
    readonly context: RedisMasterContext,
  ) {
    const { clock, settings, observer } = context;
    this.clock = clock;
    this.keyspace = new Keyspace(settings.keyPrefix);
    this.gate = settings.restartGuard ? new RestartGate(clock) : undefined;
    this.permissions = new MissingPermissions({
      keyPrefix: settings.keyPrefix,
      marker: this.gate && this.keyspace.marker,
      run: (trials) => this.evaluate(PERMISSIONS, [JSON.stringify(trials)]),
      refusalOf: (error) => (isReply(error) ? refusalFrom(error, this.connection.secrets) : undefined),
    });
    this.recognition = new Recognition({
      name,
      observer,
      isGuarded: settings.restartGuard,
      report: () => this.report(),
      refuse: (fault) => this.connection.refuse(fault),
    });
    this.connection = new Connection(client, clock, {
      greet: () => this.recognition.run(),
      serve: (isLate) => this.serve(isLate),
      onDiagnosis: (problem) => observer.masterRefused?.(name, reasonOf(problem)),
      lose: () => this.gate?.forget(),
      report: (problem) => observer.masterLost?.(name, reasonOf(problem)),
      isIdle: () => !this.queue.isWaiting,
      languageOf: context.languageOf,
    });
    const { connection } = this;
    const { isAlone = false } = context;
    this.queue = new RequestQueue({ clock, isAlone, settings, connection, send: (asked) => this.send(asked) });
  }

  get placeholderUrl(): string {
    return placeholderUrlOf(this.client.options);
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    const problem = this.connection.unreachable();
    if (problem) reply(problem);
    else if (request.op === 'probe') this.add(request, (answer) => void this.permissions.judge(answer).then(reply));
    else this.add(request, reply);
  }

  identity(): MasterIdentity {
    const { lastReport, fault } = this.recognition;
    const { run = '', version } = lastReport ?? {};
    const marker = this.gate ? (this.gate.marker ?? null) : '';
    return { run: run || undefined, marker, version, fault, quarantine: this.quarantine };
  }

  get isQuarantined(): boolean {
    return this.gate?.isShut ?? false;
  }

  get isConnected(): boolean {
    return !this.closing && this.connection.problem === undefined;
  }

  get quarantine(): Quarantine | undefined {
    return this.gate?.quarantine;
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    if (listener && !this.closing) {
      const { masterTimeout } = this.context.settings;
      this.notifications ??= new NotificationChannel(this.client.duplicate(), this.clock, masterTimeout, (error) =>
        this.permissions.note('subscribe', error),
      );
      this.notifications.add(waiter, listener);
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

  reopened(): Promise<void> | undefined {
    return this.closing ? undefined : this.connection.reopened();
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
    this.wait?.cancel();
    await this.queue.drain();
    await this.connection.close();
  }

  private send(all: readonly PendingRequest[]): void {
    const problem = this.connection.unreachable();
    const asked = problem ? all : this.ofThisConnection(all);
    const [first, second] = asked;
    const alone = second ? undefined : first;
    if (problem) for (const one of asked) one.reply(problem);
    else if (alone && isStateRequest(alone.request)) new ServerCall(this, asked).runState(alone.request, alone);
    else if (alone && !this.gate && isPlain(alone.request)) this.set(alone.request, alone);
    else if (first) new ServerCall(this, asked).run();
  }

  // A round goes over the connections that stood at its beginning: of two addresses that have begun to lead to one
  // server, only one may count in it.
  // Protocol 8.5
  private ofThisConnection(asked: readonly PendingRequest[]): readonly PendingRequest[] {
    const { connection } = this;
    const isLate = ({ request }: PendingRequest): boolean =>
      'since' in request && connection.isYoungerThan(request.since); // @mutant any-connection-in-a-round
    if (!asked.some(isLate)) return asked;
    for (const one of asked) if (isLate(one)) one.reply(connection.replaced());
    return asked.filter((one) => !isLate(one));
  }

  // One lock at a time without a guard: the server answers this sooner than the script, which explains a refusal.
  // Protocol 4.2
  private set(request: AcquireRequest, asked: PendingRequest): void {
    this.client.call('set', [...request.keys, request.token, 'PX', String(Math.ceil(request.ttl)), 'NX']).then(
      (value) => {
        if (value === 'OK') asked.reply(GRANTED);
        else if (value !== null) asked.reply(UNEXPECTED);
        else if (request.withdrawn) asked.reply(HELD);
        else new ServerCall(this, [asked]).run();
      },
      (error: unknown) => asked.reply(this.connection.failure(error, [request.token])),
    );
  }

  // Over each new connection before anything else, so that the wait of a server begins early.
  // Protocol 8.4
  private async report(): Promise<ServerIdentity> {
    const { gate, keyspace } = this;
    const marker = gate ? [keyspace.marker, Math.ceil(this.context.settings.maxTtl)] : [''];
    try {
      const report = parseServerIdentity(await this.evaluate(REPORT, marker));
      gate?.noteReport(report.run, report.gate);
      return report;
    } catch (error) {
      throw await this.permissions.named(error);
    }
  }

  // Reports when the server begins to wait, and when it votes again.
  noteGate(): void {
    const { quarantine } = this;
    const { observer } = this.context;
    if (quarantine) {
      if (!this.isWaiting) observer.masterQuarantined?.(this.name, quarantine.reason, quarantine.remaining);
      this.isWaiting = true;
      this.wait ??= this.clock.schedule(Math.ceil(quarantine.remaining), () => this.askGate()).unref();
    } else if (this.isWaiting) {
      this.isWaiting = false;
      this.wait?.cancel();
      this.wait = undefined;
      observer.masterVotesAgain?.(this.name);
      this.listener?.();
    }
  }

  // For calls that wait: the server decides whether its wait has ended.
  private askGate(): void {
    this.wait = undefined;
    if (!this.isConnected) return;
    this.report().then(
      () => this.noteGate(),
      // The next connection begins with the same question.
      () => undefined,
    );
  }

  private serve(isLate: boolean): void {
    this.load();
    if (isLate) this.context.observer.masterFound?.(this.name);
    this.noteGate();
    this.listener?.();
  }

  // No answer is awaited: the server loads the script before it reads what is sent afterwards.
  private load(): void {
    this.client.call('script', ['LOAD', LOCKS]).then(
      () => this.permissions.note('script', undefined),
      (error: unknown) => this.permissions.note('script', error),
    );
  }

  private evaluate(script: string, args: readonly (string | number)[]): Promise<unknown> {
    return this.client.call('eval', [script, 0, ...args]);
  }

  private add(request: MasterRequest, reply: ReplyCallback): void {
    this.queue.add(new Question(this, request, reply));
  }

  // A missing permission is named.
  explain(answer: MasterReply, reply: ReplyCallback): void {
    if (answer.kind === 'refused' && answer.code === 'NOPERM') {
      void this.permissions.explain(answer).then((explained) => this.deliver(explained, reply));
    } else this.deliver(answer, reply);
  }

  // In this order: what the reply asks for next is gathered while this request still counts as unanswered.
  private deliver(answer: MasterReply, reply: ReplyCallback): void {
    reply(answer);
    this.queue.noteAnswer();
  }
}
