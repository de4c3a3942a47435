import type { SimProcess } from '../engine/process.js';
import type { Scheduler } from '../engine/scheduler.js';
import type { Endpoint } from './endpoint.js';
import { type Direction, type Link, Pipe } from './link.js';

export interface Owner {
  readonly onReply: (reply: unknown) => void;
  readonly onMessage: (channel: string, message: string) => void;
  readonly onClosed: () => void;
}

/** How a connection breaks: at once, or with the next request or reply. */
export type Cut = 'now' | 'request' | 'reply';

/**
 * One TCP connection. Lost data is lost together with the connection, and nothing arrives twice: TCP drops a copy of a
 * packet, and the client resends nothing after a reconnect (`autoResendUnfulfilledCommands: false`).
 */
export class Connection {
  private readonly out: Pipe;
  private readonly in: Pipe;
  private cut: Cut | undefined;
  private isOpen = true;
  /** Called when the client gives up a connection that is half-open. */
  private onReplaced: (() => void) | undefined;
  private isClosedHere = false;
  private orphaned: (() => void) | undefined;
  private readonly push = (channel: string, message: string): void =>
    this.in.send(() => this.arrive(() => this.owner.onMessage(channel, message)));
  private readonly peer = { push: this.push };

  constructor(
    private readonly owner: Owner,
    private readonly process: SimProcess,
    private readonly endpoint: Endpoint,
    private readonly link: Link,
    private readonly scheduler: Scheduler,
  ) {
    this.out = new Pipe(scheduler, link, 'out');
    this.in = new Pipe(scheduler, link, 'in');
    endpoint.connections.add(this);
  }

  get processName(): string {
    return this.process.name;
  }

  get isBusy(): boolean {
    return this.out.isBusy || this.in.isBusy;
  }

  send(command: string, args: readonly (string | number)[]): void {
    this.process.send(() =>
      this.out.send(() => {
        if (this.cut === 'request') this.reset(0);
        else this.endpoint.receive(this, () => this.carryOut(command, args));
      }),
    );
    if (this.orphaned) this.leaveBehind(this.orphaned);
  }

  /** Closes the client's side. What was sent still arrives, and then the end of the connection. */
  private leaveBehind(arrived: () => void): void {
    this.orphaned = undefined;
    this.process.send(() =>
      this.out.send(() =>
        this.endpoint.receive(this, () => {
          arrived();
          this.drop();
        }),
      ),
    );
    this.scheduler.after(this.link.delay(), () => this.tellClosed());
  }

  /** Closes the connection. Data that was sent earlier still arrives first. */
  close(): void {
    this.process.send(() =>
      this.out.send(() =>
        this.endpoint.receive(this, () => {
          this.drop();
          this.in.send(() => this.tellClosed());
        }),
      ),
    );
  }

  /** Breaks the connection, now or when the next message travels over it. */
  break(cut: Cut): void {
    if (cut === 'now') this.reset(0);
    else this.cut = cut;
  }

  /** From now on, everything that is sent over it vanishes. Neither side learns of it. */
  fallSilent(onReplaced: () => void): void {
    this.onReplaced = onReplaced;
    this.endpoint.mayKeepKeys = true;
    this.out.close();
    this.in.close();
  }

  /** What is sent from now on arrives this many milliseconds later. */
  delay(direction: Direction, milliseconds: number): void {
    const pipe = direction === 'out' ? this.out : this.in;
    pipe.delayUntil(this.scheduler.now + milliseconds);
  }

  /**
   * The client replaces the connection after its next request. What it sends until then arrives so many milliseconds later, and
   * the server closes its side after that.
   */
  orphan(milliseconds: number, arrived: () => void): void {
    this.delay('out', milliseconds);
    this.orphaned = arrived;
    this.scheduler.after(milliseconds, () => {
      this.orphaned = undefined;
    });
  }

  /** Ends the connection and drops everything in flight. The client learns of it as soon as something reaches it. */
  reset(delay: number): void {
    if (!this.isOpen) return;
    this.drop();
    this.out.close();
    this.in.close();
    if (this.onReplaced) return;
    const notify = (): void => void this.scheduler.after(delay + this.link.delay(), () => this.tellClosed());
    if (this.link.isBlocked('in')) this.link.whenFree('in', notify);
    else notify();
  }

  private drop(): void {
    this.isOpen = false;
    this.endpoint.mayKeepKeys = true;
    this.endpoint.connections.delete(this);
    this.endpoint.server?.forget(this.peer);
  }

  private carryOut(command: string, args: readonly (string | number)[]): void {
    const { server } = this.endpoint;
    if (!server || !this.isOpen) return;
    const reply = this.answer(command, args);
    if (this.cut === 'reply') this.reset(0);
    else this.in.send(() => this.arrive(() => this.owner.onReply(reply)));
  }

  private answer(command: string, args: readonly (string | number)[]): unknown {
    const { server } = this.endpoint;
    if (command === 'INFO') return 'ready';
    if (command !== 'SUBSCRIBE') return server?.answer(command, args);
    server?.subscribe(String(args[0]), this.peer);
    return 1;
  }

  private arrive(action: () => void): void {
    this.process.receive(() => {
      if (!this.isClosedHere) action();
    });
  }

  private tellClosed(): void {
    this.arrive(() => {
      this.isClosedHere = true;
      this.owner.onClosed();
    });
  }

  abandon(): void {
    this.onReplaced?.();
    this.tellClosed();
  }
}
