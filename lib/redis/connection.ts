import type { Clock, Timer } from '../core/clock.js';
import { backoff } from './own-settings.js';
import type { RedisClient } from './redis-client.interface.js';
import { isReply, redactedMessageOf } from './replies.js';

/** Time limit for a socket to close, in milliseconds. */
const GONE_WITHIN = 1_000;
/** A server that accepts a connection gets this many milliseconds to become ready for commands. */
const READY_WITHIN = 10_000;

/** The user of a connection. */
export interface ConnectionUser {
  /** Identifies the server before any other request. Resolves with whether the server may be used. May reject. */
  greet(): Promise<boolean>;
  /** Called when the connection can be used. */
  serve(): void;
  /** Called when a connection that could be used is lost, unless it was closed on purpose. */
  lose(reason: string): void;
}

/** Keeps a dedicated connection to one server, and records why there is none. */
export class Connection {
  /** Strings that no error message may contain. */
  readonly secrets: readonly string[];
  private trouble: string | undefined = 'not connected yet';
  /** Whether the connection works, but with the wrong database. */
  private misplaced = false;
  private closed = false;
  private isServing = false;
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
    // The status of the client changes one turn of the event loop before the event.
    if (this.trouble === undefined && this.client.status !== 'ready') return 'the connection broke';
    return this.trouble;
  }

  /** Opens the connection and keeps reopening it until `close`. Resolves when the first attempt has ended. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      this.settled = resolve;
      this.connect();
    });
  }

  /** Drops the connection, whose peer may have disappeared silently, and opens a new one. */
  reopen(): void {
    this.trouble = 'no answer for long, connecting anew';
    this.drop();
  }

  /** Drops a server that must not be used, and tries again later, when that may have changed. */
  refuse(why: string): void {
    this.isServing = false;
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
      // Without a socket there is no event to wait for.
      if (status === 'end' || status === 'close' || status === 'reconnecting') this.ended();
    });
  }

  private connect(): void {
    // Events report the result.
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
      this.isServing = true;
      this.user.serve();
    } else {
      this.settle();
    }
  }

  private fail(error: unknown): void {
    this.trouble = redactedMessageOf(error, this.secrets);
    if (isAboutDatabase(error)) this.misplaced = true;
    this.settle();
    // Not every error ends the connection, but after any error the connection cannot be trusted.
    if (this.client.status === 'ready') this.drop();
  }

  private lose(): void {
    this.trouble ??= 'the connection broke';
    this.deadline?.cancel();
    this.settle();
    if (this.isServing && !this.closed) this.user.lose(this.trouble);
    this.isServing = false;
  }

  /** Called when the client has given up, which it should only do when it is closed. */
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

/** Whether SELECT failed. The client reports such a connection as ready, and it works on database 0. */
function isAboutDatabase(error: unknown): boolean {
  const { command } = error as { command?: { name?: string } };
  return isReply(error) && command?.name === 'select';
}
