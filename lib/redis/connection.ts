import type { Clock, Timer } from '../core/clock.js';
import { backoff } from './own-settings.js';
import type { RedisClient } from './redis-client.interface.js';
import { isReply, tell } from './replies.js';

/** How long it takes at most until a closed socket is gone, in milliseconds. */
const GONE_WITHIN = 1_000;
/** A server that accepts a connection gets this many milliseconds to become ready for commands. */
const READY_WITHIN = 10_000;

/** Who uses a connection. */
export interface ConnectionUser {
  /** Asks the server who it is, before anything else; tells whether it may be used. May reject. */
  greet(): Promise<boolean>;
  /** The connection can be used from now on. */
  serve(): void;
}

/** Keeps a connection to one server, which is used for nothing else, and knows why there is none if there is none. */
export class Connection {
  /** What an error message must not tell. */
  readonly secrets: readonly string[];
  private trouble: string | undefined = 'not connected yet';
  /** The connection works, but not with the database that it was meant for. */
  private misplaced = false;
  private closed = false;
  private settled: (() => void) | undefined;
  private ended: (() => void) | undefined;
  private deadline: Timer | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly clock: Clock,
    private readonly user: ConnectionUser,
  ) {
    const { password, sentinelPassword } = client.options;
    this.secrets = [password, sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
    client.on('connect', () => this.awaitReady());
    client.on('ready', () => this.becomeReady());
    client.on('error', (error) => this.fail(error));
    client.on('close', () => this.lose());
    client.on('end', () => this.end());
  }

  /** Why there is no connection; `undefined` while there is one. */
  get problem(): string | undefined {
    // The client knows of a broken connection one turn before it tells.
    if (this.trouble === undefined && this.client.status !== 'ready') return 'the connection broke';
    return this.trouble;
  }

  /** Opens the connection and keeps reopening it until `close`. Resolves when the first try has ended. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.settled = resolve;
      this.connect();
    });
  }

  /** Drops the connection, whose other end may be gone without a word, and opens a new one. */
  reopen(): void {
    this.trouble = 'no answer for long, connecting anew';
    this.drop();
  }

  /** The server must not be used. That may have changed when we come back. */
  refuse(why: string): void {
    this.trouble = why;
    this.dropLater();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.trouble = 'closed';
    this.deadline?.cancel();
    this.settle();
    await new Promise<void>((resolve) => {
      const timer = this.clock.schedule(GONE_WITHIN, resolve);
      this.ended = () => {
        timer.cancel();
        resolve();
      };
      const { status } = this.client;
      if (status !== 'end') this.client.disconnect();
      // There is no socket that could tell its end.
      if (status === 'end' || status === 'close' || status === 'reconnecting') this.ended();
    });
  }

  private connect(): void {
    // How it ends is told by events.
    this.client.connect().catch(() => undefined);
  }

  private drop(): void {
    if (!this.closed) this.client.disconnect(true);
  }

  private dropLater(): void {
    this.deadline?.cancel();
    this.deadline = this.clock.schedule(backoff(Infinity), () => this.drop()).unref();
  }

  private awaitReady(): void {
    this.trouble = 'connected, but the server is not ready: it hangs, or is loading its data';
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
    this.trouble = 'connected, but not recognized yet';
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
      this.trouble = undefined;
      this.settle();
      this.user.serve();
    } else {
      this.settle();
    }
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
    this.deadline?.cancel();
    this.settle();
  }

  /** The client has given up, which it is only meant to do when it is closed. */
  private end(): void {
    this.lose();
    this.ended?.();
    if (this.closed) return;
    this.clock.schedule(backoff(Infinity), () => this.closed || this.connect()).unref();
  }

  private settle(): void {
    this.settled?.();
    this.settled = undefined;
  }
}

/** A connection whose SELECT failed is offered as if nothing had happened, and works on database 0. */
function isAboutDatabase(error: unknown): boolean {
  const { command } = error as { command?: { name?: string } };
  return isReply(error) && command?.name === 'select';
}
