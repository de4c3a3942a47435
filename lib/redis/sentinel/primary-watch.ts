import { type Clock, elapsedBetween, type Instant, type Timer } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import { isRecent, VIEW_AGE, VIEW_INTERVAL } from '../cluster/views.js';
import { endpointOf } from '../urls.js';
import { keyOf, type SentinelView, type SentinelViews } from './sentinel-views.js';

// In milliseconds, for a primary that is silent, and for one that no majority names.
const LOOK_INTERVAL = 1_000;

interface PrimaryWatchContext {
  readonly clock: Clock;
  readonly views: SentinelViews;
  readonly isGuarded: boolean;
  // Identifies the primary that the present connection leads to; `undefined` without a connection.
  readonly connectedTo: () => string | undefined;
  readonly isSilent: () => boolean;
  readonly reopen: (why: string) => void;
  // Called when votes cease to count, and with `undefined` when they count again.
  readonly onDoubt: (doubt: Quarantine | undefined) => void;
}

// With the restart guard, a vote counts only if a majority of all sentinels named the primary of the connection in a
// view that was sent at most `VIEW_AGE` before the vote.
export class PrimaryWatch {
  private confirmed: { readonly key: string; readonly sent: Instant } | undefined;
  private viewedAt: Instant | undefined;
  private doubt: string | undefined;
  private timer: Timer | undefined;
  private isClosed = false;
  // No older view counts: the clocks of this process have stood still. Monotonic, in milliseconds.
  private notBefore = -Infinity;

  constructor(private readonly context: PrimaryWatchContext) {
    this.look();
  }

  get key(): string | undefined {
    return this.context.connectedTo();
  }

  get quarantine(): Quarantine | undefined {
    return this.doubt === undefined ? undefined : { reason: this.doubt, remaining: LOOK_INTERVAL };
  }

  refresh(now: Instant): void {
    if (!this.viewedAt || elapsedBetween(this.viewedAt, now) >= VIEW_INTERVAL) void this.ask(now, 0);
  }

  // Protocol 13.1
  isConfirmed(key: string | undefined, sent: Instant): boolean {
    const { confirmed } = this;
    if (confirmed === undefined || confirmed.key !== key) return false;
    return confirmed.sent.monotonic >= this.notBefore && isRecent(confirmed.sent, sent);
  }

  noteStandstill(): void {
    this.notBefore = this.context.clock.read().monotonic;
  }

  async confirm(key: string | undefined, sent: Instant): Promise<boolean> {
    if (!this.isConfirmed(key, sent)) await this.ask(sent, Math.min(VIEW_AGE, sent.monotonic - this.notBefore));
    return this.isConfirmed(key, sent);
  }

  // Resolves when a majority has named the primary of the connection, at most `VIEW_AGE` ago; else rejects.
  async require(): Promise<void> {
    const now = this.context.clock.read();
    const { key } = this;
    if (await this.confirm(key, now)) return;
    throw new Error(this.doubt ?? 'its sentinels name another primary');
  }

  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    this.context.views.close();
  }

  private async ask(moment: Instant, age: number): Promise<void> {
    this.viewedAt = this.context.clock.read();
    this.take(await this.context.views.askFor(moment, age));
  }

  private take({ sent, tally }: SentinelView): void {
    const { connectedTo, isGuarded, reopen } = this.context;
    if (this.isClosed) return;
    this.setDoubt(isGuarded && !tally.primary ? tally.reason : undefined);
    if (!tally.primary || !tally.isMajority) return;
    const key = keyOf(tally.primary);
    const isNewest = this.confirmed === undefined || sent.monotonic >= this.confirmed.sent.monotonic;
    if (isNewest) this.confirmed = { key, sent };
    const connected = connectedTo();
    if (connected === undefined || connected === key) return;
    reopen(`its sentinels name ${endpointOf(tally.primary.address)} as the primary now`);
  }

  private setDoubt(reason: string | undefined): void {
    const isNew = (reason === undefined) !== (this.doubt === undefined);
    this.doubt = reason;
    if (isNew) this.context.onDoubt(this.quarantine);
  }

  private look(): void {
    this.timer = this.context.clock
      .schedule(LOOK_INTERVAL, () => {
        const { clock, connectedTo, isSilent } = this.context;
        const isDoubtful = this.doubt !== undefined || isSilent();
        if (isDoubtful && connectedTo() !== undefined) void this.ask(clock.read(), 0);
        this.look();
      })
      .unref();
  }
}
