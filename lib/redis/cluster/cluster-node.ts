import { type Clock, elapsedSince, type Instant } from '../../core/clock.js';
import type { MasterReply, NotificationListener, UnreachableReply } from '../../core/master.interface.js';
import { Refusal } from '../../core/health/refusal.js';
import { Connection } from '../connection.js';
import type { Endpoint, Language } from '../connection-problem.js';
import { faultOfVersion, isReply, millisecondsFrom, parseInfo, type ServerIdentity } from '../replies.js';
import { NotificationChannel } from '../notification-channel.js';
import type { RedisClient } from '../redis-client.interface.js';
import { boundScript } from '../scripts/bound-script.js';
import { nameOf, type NodeAddress } from '../urls.js';
import { type NodeView, parseNodes, viewFromSlots } from './cluster-map.js';

// This many unanswered commands make a node suspect; fewer may simply be on their way.
const OVERDUE_ANSWERS = 3;

interface ClusterNodeContext {
  readonly address: NodeAddress;
  readonly client: RedisClient;
  readonly clock: Clock;
  readonly languageOf?: ((endpoint: Endpoint) => Promise<Language | undefined>) | undefined;
  // The service forbids CLUSTER NODES.
  readonly asksSlots: boolean;
  // Milliseconds after which an answer is overdue.
  readonly patience: number;
  readonly isGuarded: boolean;
  readonly ready: (node: ClusterNode, isLate: boolean) => void;
  // A connection that could be used is lost, or none could be opened.
  readonly lost: (node: ClusterNode) => void;
}

// Protocol 12.2
export class ClusterNode {
  // Empty until it is known.
  id = '';
  // Bound to the run of the process: another run does not know it.
  script = boundScript('');
  identity: ServerIdentity | undefined;
  fault: string | undefined;
  questions = 0;
  readonly refusal = new Refusal();
  private readonly client: RedisClient;
  private readonly connection: Connection;
  private notifications: NotificationChannel | undefined;
  private listening: { readonly waiter: string; readonly listener: NotificationListener } | undefined;
  private unanswered = 0;
  // When the first command after the last answer was sent.
  private waitingSince: Instant | undefined;
  private isFoundSilent = false;
  private isJudging = false;
  private isCorked = false;
  private isClosed = false;

  constructor(private readonly context: ClusterNodeContext) {
    const { client, clock } = context;
    this.client = client;
    this.connection = new Connection(client, clock, {
      greet: () => this.recognize(),
      serve: (isLate) => context.ready(this, isLate),
      onPermanentFailure: () => context.lost(this),
      lose: () => context.lost(this),
      languageOf: context.languageOf,
    });
  }

  get address(): NodeAddress {
    return this.context.address;
  }

  get name(): string {
    return nameOf(this.address);
  }

  get isConnected(): boolean {
    return !this.isClosed && this.connection.problem === undefined;
  }

  problem(place = `${this.name}: `): UnreachableReply | undefined {
    return this.connection.unreachable(place);
  }

  get isListening(): boolean {
    return this.notifications?.isListening ?? false;
  }

  // Each run of a node has its own name: all nodes receive what one publishes, but only its own subscribers are
  // counted.
  // Protocol 12.9
  channelOf(waiter: string): string {
    return `${waiter}@${this.identity?.run ?? ''}`;
  }

  open(): Promise<void> {
    return this.connection.open();
  }

  async recognize(): Promise<boolean> {
    const { asksSlots, isGuarded } = this.context;
    const [time, info, again] = await Promise.all([
      this.call('time', []),
      this.info(),
      isGuarded ? this.info() : undefined,
    ]);
    const run = this.identity?.run;
    this.identity = parseInfo(info, millisecondsFrom(time));
    this.fault = faultOfNode(this.identity) ?? (isGuarded ? faultOfIdentity(this.identity, again) : undefined);
    if (this.fault !== undefined) {
      this.connection.refuse(this.fault);
      return false;
    }
    const [view, id] = await Promise.all([this.ask(), asksSlots ? this.call('cluster', ['MYID']) : undefined]);
    this.id = asksSlots ? String(id) : view.self;
    this.script = boundScript(this.identity.run);
    // No answer is awaited: the node loads it before it reads what is sent afterwards.
    void this.client.call('script', ['LOAD', this.script.text]).catch(() => undefined);
    if (run !== undefined && run !== this.identity.run) this.subscribe();
    return true;
  }

  // Empty without the permission.
  private async info(): Promise<string> {
    try {
      return String(await this.call('info', []));
    } catch (error) {
      if (isReply(error)) return '';
      throw error;
    }
  }

  async ask(): Promise<NodeView> {
    this.questions++;
    try {
      if (this.context.asksSlots) return viewFromSlots(await this.call('cluster', ['SLOTS']));
      return parseNodes(String(await this.call('cluster', ['NODES'])));
    } finally {
      this.questions--;
    }
  }

  call(command: string, args: (string | number)[]): Promise<unknown> {
    return new Promise((resolve, reject) => this.request(command, args, resolve, reject));
  }

  // As `call`, for what nearly every lock needs: a callback costs less than one more promise.
  request(
    command: string,
    args: (string | number)[],
    answered: (value: unknown) => void,
    failed: (error: unknown) => void,
  ): void {
    this.cork();
    this.unanswered++;
    this.waitingSince ??= this.context.clock.read();
    this.client.call(command, args).then(
      (value) => {
        this.noteAnswer();
        answered(value);
      },
      (error: unknown) => {
        this.noteAnswer();
        failed(error);
      },
    );
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    this.listening = listener && { waiter, listener };
    this.subscribe();
    this.notifications?.test();
  }

  get isSilent(): boolean {
    if (!this.isFoundSilent && !this.isJudging && this.isOverdue) {
      this.isJudging = true;
      // Answers may have arrived while this process was busy: it reads its input before the verdict.
      this.context.clock.afterInput(() => {
        this.isJudging = false;
        this.isFoundSilent = this.isOverdue;
      });
    }
    return this.isFoundSilent;
  }

  // Milliseconds since the first command that was left unanswered.
  get silence(): number {
    return this.waitingSince ? elapsedSince(this.context.clock, this.waitingSince) : 0;
  }

  private get isOverdue(): boolean {
    return this.unanswered >= OVERDUE_ANSWERS && this.silence > this.context.patience;
  }

  private noteAnswer(): void {
    this.waitingSince = --this.unanswered > 0 ? this.context.clock.read() : undefined;
    this.isFoundSilent = false;
  }

  reconnect(): void {
    this.connection.reopen();
    this.notifications?.reconnect();
  }

  failure(error: unknown, tokens: readonly string[]): MasterReply {
    return this.connection.failure(error, tokens, `${this.name}: `);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.notifications?.close();
    await this.connection.close();
  }

  // All commands of one turn go to the node in one write.
  private cork(): void {
    const { stream } = this.client;
    if (this.isCorked || !stream) return;
    this.isCorked = true;
    stream.cork();
    process.nextTick(() => {
      this.isCorked = false;
      stream.uncork();
    });
  }

  private subscribe(): void {
    const { listening, identity } = this;
    const isWanted = listening && identity && !this.isClosed;
    const channel = isWanted ? this.channelOf(listening.waiter) : undefined;
    if (this.notifications?.channel === channel) return;
    this.notifications?.close();
    this.notifications =
      channel === undefined || !listening
        ? undefined
        : new NotificationChannel(this.client.duplicate(), channel, listening.listener, this.context.clock);
  }
}

export function faultOfNode({ mode, version }: ServerIdentity): string | undefined {
  if (mode !== undefined && mode !== 'cluster') {
    return 'it is not a node of a cluster: give it as redis://host:port, without `cluster`';
  }
  return faultOfVersion(version);
}

function faultOfIdentity({ run, replid }: ServerIdentity, again: string | undefined): string | undefined {
  if (run === '' || replid === '') {
    return 'it does not report which process it is, so that restarts go unnoticed: permit INFO, or set `restartGuard: false`';
  }
  if (again !== undefined && parseInfo(again, 0).run !== run) {
    return 'it reports another process with each answer, so that restarts go unnoticed: connect to the nodes and not to a proxy, or set `restartGuard: false`';
  }
  return undefined;
}
