import { type Clock, elapsedSince, type Instant, type Timer } from '../redlock/clock.js';
import type { NotificationListener } from '../masters/master.interface.js';
import { backoff, READY_WITHIN } from './connection.js';
import type { RedisClient } from './redis-client.interface.js';

// A connection that has been silent for this many milliseconds is tested, and has as many to answer, or two timeouts of a
// master that is far away.
const SILENT_AFTER = 500;

// The connection over which a master notifies a waiting process that it is next: one channel for each name under which it
// waits, whatever the number of keys. Only speed depends on it: a waiter that receives no notification polls after a
// while.
export class NotificationChannel {
  private readonly listeners = new Map<string, NotificationListener>();
  // Channels that are subscribed.
  private subscribed = 0;
  private closed = false;
  private retry: Timer | undefined;
  private heardAt: Instant | undefined;
  // When the oldest unanswered request was sent, and the milliseconds that the server has to answer.
  private owing: { readonly since: Instant; readonly patience: number } | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly clock: Clock,
    // In milliseconds.
    private readonly masterTimeout: number,
    // Called with the error of each subscription, `undefined` for one that has succeeded.
    private readonly noteSubscription: (error: unknown) => void = () => undefined,
  ) {
    client.on('connect', () => this.expect(READY_WITHIN));
    client.on('ready', () => this.subscribe());
    client.on('close', () => this.lose());
    client.on('end', () => this.open(backoff(Infinity)));
    // The connection for commands reports why there is none.
    client.on('error', () => undefined);
    client.on('message', (channel, key) => {
      this.hear();
      this.listeners.get(String(channel))?.(String(key));
    });
    this.open(0);
  }

  get isListening(): boolean {
    return this.subscribed > 0;
  }

  add(channel: string, listener: NotificationListener): void {
    const { size } = this.listeners;
    this.listeners.set(channel, listener);
    if (this.listeners.size > size && this.isListening) this.subscribe();
  }

  // Called whenever a waiter joins a queue of this master or polls: so no timer is needed. A dead connection is as
  // quiet as an idle one, and SUBSCRIBE, which tests it, needs no further permission and changes nothing.
  test(): void {
    const { owing, heardAt } = this;
    if (!owing) {
      if (this.isListening && heardAt && elapsedSince(this.clock, heardAt) > SILENT_AFTER) this.subscribe();
    } else if (elapsedSince(this.clock, owing.since) > owing.patience) {
      // The answer may have arrived while this process was busy: let it read its input first.
      this.clock.afterInput(() => this.owing === owing && this.reconnect());
    }
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    this.client.disconnect();
  }

  private reconnect(): void {
    if (!this.closed) this.client.disconnect(true);
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

  // The waiters of a master that may be gone look for another one.
  private lose(): void {
    const { isListening } = this;
    this.subscribed = 0;
    this.owing = undefined;
    if (isListening && !this.closed) this.noteGap();
  }

  private subscribe(): void {
    this.expect(Math.max(SILENT_AFTER, 2 * this.masterTimeout));
    const channels = [...this.listeners.keys()];
    Promise.all(channels.map((channel) => this.client.subscribe(channel))).then(
      () => {
        this.hear();
        this.noteSubscription(undefined);
        if (this.subscribed >= channels.length) return;
        this.subscribed = channels.length;
        // Those before the subscription were missed.
        this.noteGap();
      },
      // Without the permission to subscribe there are no notifications.
      (error: unknown) => {
        this.owing = undefined;
        this.noteSubscription(error);
      },
    );
  }
  // Notifications may have been lost.
  private noteGap(): void {
    for (const listener of this.listeners.values()) listener(undefined);
  }
}
