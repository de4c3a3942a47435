import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import type { Happening, LiveEvent } from './live-event.js';

/** Number of events that are kept for pages that open later: about ten minutes. */
const KEPT = 1_000;

/** Past events, and a stream of new ones. */
@Injectable()
export class Timeline implements BeforeApplicationShutdown {
  private readonly recorded: LiveEvent[] = [];
  private readonly added = new Subject<LiveEvent>();
  private count = 0;

  /** The recorded events, the oldest first. */
  get events(): readonly LiveEvent[] {
    return this.recorded;
  }

  /** Events from now on. */
  get news(): Observable<LiveEvent> {
    return this.added;
  }

  /** @param at milliseconds since the Unix epoch */
  record(happening: Happening, at = Date.now()): void {
    const event = { ...happening, id: ++this.count, at };
    this.recorded.push(event);
    if (this.recorded.length > KEPT) this.recorded.shift();
    this.added.next(event);
  }

  beforeApplicationShutdown(): void {
    this.added.complete();
  }
}
