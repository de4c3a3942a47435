import type {
  Master,
  MasterIdentity,
  MasterReply,
  MasterRequest,
  NotificationListener,
  ReplyCallback,
} from '../../../lib/masters/master.interface.js';
import type { UnreachableReply } from '../../../lib/redlock/server.js';
import type { Chance } from '../engine/chance.js';
import type { SimProcess } from '../engine/process.js';
import type { Scheduler } from '../engine/scheduler.js';
import { Link, Pipe } from '../network/link.js';
import type { DataReport, JobServer } from './job-server.js';

const NEW_LOCKS: readonly MasterRequest['op'][] = ['acquire', 'pick', 'draw'];
const NOT_CONNECTED: UnreachableReply = Object.freeze({ kind: 'unreachable', reason: 'not connected', sent: false });
const BROKEN: UnreachableReply = Object.freeze({ kind: 'unreachable', reason: 'the connection broke', sent: true });
/** Bounds of the pause before a connection is opened again, in milliseconds. */
const [SOONEST, LATEST] = [50, 2_000];

interface Socket {
  readonly out: Pipe;
  readonly in: Pipe;
  readonly pending: Set<ReplyCallback>;
}

export interface JobMasterOptions {
  readonly server: JobServer;
  readonly process: SimProcess;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly latency: number;
}

/** A master as one instance reaches it, over a connection that can break and stall. */
export class JobMaster implements Master {
  readonly name: string;
  readonly link: Link;
  private socket: Socket | undefined;
  private report: DataReport | undefined;
  private isReporting = false;
  private isClosed = false;
  private readonly ready: (() => void)[] = [];
  private readonly listeners = new Map<string, NotificationListener>();

  constructor(private readonly options: JobMasterOptions) {
    const { server, scheduler, chance, latency } = options;
    this.name = server.name;
    this.link = new Link(scheduler, chance, latency);
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    const { socket, report } = this;
    if (!socket || !report) {
      reply(NOT_CONNECTED);
      return;
    }
    if (NEW_LOCKS.includes(request.op) && this.isQuarantined) {
      reply({ kind: 'quarantined', reason: 'its data is new', remaining: this.quarantineLeft });
      return;
    }
    const { marker } = report;
    this.send(socket, (server) => server.answer(request, marker), reply);
  }

  async connect(): Promise<void> {
    await new Promise<void>((resolve) => this.dial(resolve));
  }

  problem(): UnreachableReply | undefined {
    return this.socket && this.report ? undefined : NOT_CONNECTED;
  }

  identity(): MasterIdentity {
    const marker = this.report?.marker;
    const quarantine = this.isQuarantined && { reason: 'its data is new', remaining: this.quarantineLeft };
    return { run: marker, marker: this.isQuarantined ? null : marker, ...(quarantine && { quarantine }) };
  }

  get isQuarantined(): boolean {
    return this.quarantineLeft > 0;
  }

  onReady(listener: () => void): void {
    this.ready.push(listener);
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    const isKnown = this.listeners.has(waiter);
    if (listener) this.listeners.set(waiter, listener);
    else this.listeners.delete(waiter);
    if (listener && !isKnown && this.socket) this.subscribe(this.socket, waiter);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.drop();
  }

  /** The connection ends: at once on the side of the server, and after a delay here. */
  break(delay: number): void {
    const { process, scheduler, chance } = this.options;
    const { socket } = this;
    if (!socket) return;
    socket.out.close();
    socket.in.close();
    scheduler.after(delay, () =>
      process.receive(() => {
        if (this.socket !== socket) return;
        this.drop();
        scheduler.after(chance.spread(SOONEST, LATEST), () => process.receive(() => this.dial(() => undefined)));
      }),
    );
  }

  /**
   * The process has crashed. What it sent before still arrives, because its kernel sends it; unless the whole machine has
   * crashed.
   */
  abandon(what: 'process' | 'machine'): void {
    this.isClosed = true;
    if (what === 'machine') this.socket?.out.close();
    for (const waiter of this.listeners.keys()) this.options.server.subscribers.delete(waiter);
  }

  private drop(): void {
    const { socket } = this;
    this.socket = undefined;
    this.report = undefined;
    socket?.out.close();
    socket?.in.close();
    for (const waiter of this.listeners.keys()) this.options.server.subscribers.delete(waiter);
    for (const reply of socket?.pending ?? []) reply(BROKEN);
    socket?.pending.clear();
  }

  private dial(tried: () => void): void {
    const { process, scheduler, chance, server } = this.options;
    if (this.isClosed || this.socket) return;
    scheduler.after(this.link.delay() + this.link.delay(), () =>
      process.receive(() => {
        if (this.isClosed || this.socket) return;
        if (server.isUp && !this.link.isBlocked('out') && !this.link.isBlocked('in')) {
          const [out, back] = [new Pipe(scheduler, this.link, 'out'), new Pipe(scheduler, this.link, 'in')];
          this.socket = { out, in: back, pending: new Set() };
          this.recognize(this.socket, tried);
          return;
        }
        tried();
        scheduler.after(chance.spread(SOONEST, LATEST), () => process.receive(() => this.dial(() => undefined)));
      }),
    );
  }

  /** Learns which data the server has. */
  private recognize(socket: Socket, done: () => void): void {
    const { process, scheduler } = this.options;
    this.isReporting = true;
    let report: DataReport | undefined;
    const read = (server: JobServer): MasterReply => {
      ({ report } = server);
      return { kind: 'granted' };
    };
    this.send(socket, read, () => {
      this.isReporting = false;
      if (this.socket === socket && report) {
        this.report = report;
        for (const [waiter, listener] of this.listeners) {
          this.subscribe(socket, waiter);
          listener(undefined);
        }
        const { quarantineLeft } = this;
        if (quarantineLeft > 0) scheduler.after(quarantineLeft + 1, () => process.receive(() => this.announce()));
        this.announce();
      }
      done();
    });
  }

  private announce(): void {
    for (const listener of this.ready) listener();
  }

  private subscribe(socket: Socket, waiter: string): void {
    const { process } = this.options;
    socket.out.send(() => {
      this.options.server.subscribers.set(waiter, (key) =>
        socket.in.send(() => process.receive(() => this.listeners.get(waiter)?.(key))),
      );
    });
  }

  private send(socket: Socket, act: (server: JobServer) => MasterReply, reply: ReplyCallback): void {
    const { process, server } = this.options;
    socket.pending.add(reply);
    socket.out.send(() => {
      if (!server.isUp) return;
      const answer = act(server);
      socket.in.send(() =>
        process.receive(() => {
          if (!socket.pending.delete(reply)) return;
          const isOther = answer.kind === 'refused' && answer.code === 'UNMARKED';
          if (isOther && !this.isReporting && this.socket === socket) this.recognize(socket, () => undefined);
          reply(answer);
        }),
      );
    });
  }

  /** In true time: the clocks of the guard are not what is tested here. */
  private get quarantineLeft(): number {
    return (this.report?.votesFrom ?? -Infinity) - this.options.scheduler.now;
  }
}
