import { randomUUID } from 'node:crypto';

/** How an event looks: `good` and `bad` concern masters and quorums, `lost` a lock, `action` a user. */
export type EventKind = 'good' | 'warning' | 'bad' | 'lost' | 'action';

/** An event to show. */
export interface DashboardEvent {
  readonly id: number;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly kind: EventKind;
  /** The lock service; `null` is the one without a name. */
  readonly service: string | null;
  readonly text: string;
}

/** Number of events that are kept. */
const KEPT = 200;

/** The latest events of this process. */
export class EventLog {
  /** Distinguishes this log from those of other instances and of an earlier run: their numbers mean other events. */
  readonly id = randomUUID();
  private readonly events: DashboardEvent[] = [];
  private count = 0;

  add(service: string | null, kind: EventKind, text: string): void {
    this.events.push({ id: ++this.count, at: Date.now(), kind, service, text });
    if (this.events.length > KEPT) this.events.shift();
  }

  /** The events with a larger number than `id`, the oldest first. */
  after(id: number): readonly DashboardEvent[] {
    return this.events.filter((event) => event.id > id);
  }
}
