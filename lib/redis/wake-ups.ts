import { type Clock, elapsedSince, type Instant, type Timer } from '../core/clock.js';
import type { WakeUp } from '../core/master.interface.js';
import { backoff } from './own-settings.js';
import type { RedisClient } from './redis-client.interface.js';

/** A connection that has said nothing for so many milliseconds is asked, and given as many to answer. */
const SILENT_AFTER = 500;
/** A server that accepts a connection gets this many milliseconds to become ready for commands. */
const READY_WITHIN = 10_000;

/**
 * The connection over which a master tells a waiting process that it is next: one channel, whatever the number of keys.
 *
 * Nothing depends on it but speed: who is not woken looks for itself after a while.
 */
export class WakeUps {
  private subscribed = false;
  private closed = false;
  private retry: Timer | undefined;
  /** When the server said something last. */
  private heardAt: Instant | undefined;
  /** Since when the server has left something unanswered, and how many milliseconds it may. */
  private owing: { readonly since: Instant; readonly patience: number } | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly channel: string,
    private readonly listener: WakeUp,
    private readonly clock: Clock,
  ) {
    client.on('connect', () => this.expect(READY_WITHIN));
    client.on('ready', () => this.subscribe());
    client.on('close', () => this.lose());
    client.on('end', () => this.open(backoff(Infinity)));
    // Why there is no connection is told by the one for commands.
    client.on('error', () => undefined);
    client.on('message', (_, key) => {
      this.hear();
      listener(String(key));
    });
    this.open(0);
  }

  /** Whether the master can wake this process now. */
  get isListening(): boolean {
    return this.subscribed;
  }

  /**
   * Called whenever something begins to wait at this master, and each time it looks again.
   *
   * A connection whose other end is gone without a word is as quiet as one on which nothing happens. A quiet one is asked
   * by SUBSCRIBE, which needs no other permission and changes nothing. There is no timer: waiters look often enough, and
   * nothing is asked where nothing waits.
   */
  test(): void {
    const { owing, heardAt } = this;
    if (!owing) {
      if (this.subscribed && heardAt && elapsedSince(this.clock, heardAt) > SILENT_AFTER) this.subscribe();
    } else if (elapsedSince(this.clock, owing.since) > owing.patience) {
      // The answer may have arrived while this process was busy: let it read before judging.
      this.clock.afterInput(() => this.owing === owing && this.reconnect());
    }
  }

  /** Drops a connection whose other end may be gone without a word. */
  reconnect(): void {
    if (!this.closed) this.client.disconnect(true);
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    this.client.disconnect();
  }

  private open(delay: number): void {
    if (this.closed) return;
    if (delay > 0) this.retry = this.clock.schedule(delay, () => this.open(0)).unref();
    else this.client.connect().catch(() => undefined);
  }

  private expect(patience: number): void {
    this.owing = { since: this.clock.read(), patience };
  }

  private hear(): void {
    this.owing = undefined;
    this.heardAt = this.clock.read();
  }

  /** Who waits at a master that may be gone looks for another one. */
  private lose(): void {
    const { subscribed } = this;
    this.subscribed = false;
    this.owing = undefined;
    if (subscribed && !this.closed) this.listener(undefined);
  }

  private subscribe(): void {
    this.expect(SILENT_AFTER);
    this.client.subscribe(this.channel).then(
      () => {
        this.hear();
        if (this.subscribed) return;
        this.subscribed = true;
        // Whatever was said before was not heard.
        this.listener(undefined);
      },
      // Without the permission to subscribe there are no wake-ups.
      () => (this.owing = undefined),
    );
  }
}
