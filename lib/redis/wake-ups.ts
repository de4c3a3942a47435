import type { Clock, Timer } from '../core/clock.js';
import type { WakeUp } from '../core/master.interface.js';
import { backoff } from './own-settings.js';
import type { RedisClient } from './redis-client.interface.js';

/**
 * The connection over which a master tells a waiting process that it is next: one channel, whatever the number of keys.
 *
 * Nothing depends on it but speed: who is not woken looks for itself after a while.
 */
export class WakeUps {
  private subscribed = false;
  private closed = false;
  private retry: Timer | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly channel: string,
    private readonly listener: WakeUp,
    private readonly clock: Clock,
  ) {
    client.on('ready', () => this.subscribe());
    client.on('close', () => this.lose());
    client.on('end', () => this.open(backoff(Infinity)));
    // Why there is no connection is told by the one for commands.
    client.on('error', () => undefined);
    client.on('message', (_, key) => listener(String(key)));
    this.open(0);
  }

  /** Whether the master can wake this process now. */
  get isListening(): boolean {
    return this.subscribed;
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

  /** Who waits at a master that may be gone looks for another one. */
  private lose(): void {
    const { subscribed } = this;
    this.subscribed = false;
    if (subscribed && !this.closed) this.listener(undefined);
  }

  private subscribe(): void {
    this.client.subscribe(this.channel).then(
      () => {
        this.subscribed = true;
        // Whatever was said before was not heard.
        this.listener(undefined);
      },
      // Without the permission to subscribe there are no wake-ups.
      () => undefined,
    );
  }
}
