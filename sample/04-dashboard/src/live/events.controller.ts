import { Controller, type MessageEvent, Sse } from '@nestjs/common';
import { defer, map, merge, type Observable, of } from 'rxjs';
import { Pulse } from './pulse.js';
import { Timeline } from './timeline.js';

@Controller('events')
export class EventsController {
  constructor(
    private readonly pulse: Pulse,
    private readonly timeline: Timeline,
  ) {}

  /** Sends past events as `history`, and then each `snapshot` and `event` as it happens. */
  @Sse()
  events(): Observable<MessageEvent> {
    return defer(() =>
      merge(
        of({ type: 'history', data: [...this.timeline.events] }),
        this.timeline.news.pipe(map((event) => ({ type: 'event', data: event }))),
        this.pulse.snapshots.pipe(map((snapshot) => ({ type: 'snapshot', data: snapshot }))),
      ),
    );
  }
}
