import type { Evidence, Violation } from './evidence.js';

/**
 * How much longer than its budget an operation may take, in milliseconds: far more than a timer needs, and far less
 * than a hang.
 */
const OPERATION_SLACK = 500;
/** How much later than the end of the validity a loss may be reported, in milliseconds. */
const LOSS_SLACK = 50;

/** Operations that took too long, not counting the time during which their process did not run. */
export function hungOperations({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events, killedAt }) => {
    const ends = new Map(events.flatMap((event) => (event.kind === 'settled' ? [[event.id, event] as const] : [])));
    return events.flatMap((event) => {
      if (event.kind !== 'asked') return [];
      const { op, id, at, within } = event;
      const end = ends.get(id);
      if (!end) return killedAt === undefined ? [{ at, message: `${op} of ${name} never settled` }] : [];
      const took = end.at - at - end.stalled;
      if (took <= within + OPERATION_SLACK) return [];
      const message = `${op} of ${name} took ${took.toFixed()} ms instead of ${within.toFixed()} until it was ${end.how}`;
      return [{ at, message }];
    });
  });
}

/** Ends of validity that were reported late to the holder, or not at all. */
export function lateLosses({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ events }) =>
    events.flatMap((event) => {
      if ((event.kind !== 'lost' && event.kind !== 'left') || event.due === undefined) return [];
      const late = event.at - event.due - event.stalled;
      if (late <= LOSS_SLACK) return [];
      const how = event.kind === 'lost' ? 'was notified of its loss' : 'was not notified of its loss';
      return [{ at: event.at, message: `${event.section} ${how} ${late.toFixed()} ms after its validity had ended` }];
    }),
  );
}

/** Errors that no code caught. */
export function unhandledErrors({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events }) =>
    events.flatMap((event) =>
      event.kind === 'unhandled' ? [{ at: event.at, message: `unhandled in ${name}: ${event.message}` }] : [],
    ),
  );
}

/** Processes that did not exit by themselves, with code 0, after their application was closed. */
export function stuckProcesses({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events, exit, killedAt }) => {
    if (exit === 0 || killedAt !== undefined) return [];
    const closed = events.some(({ kind }) => kind === 'closed') ? 'closed' : 'not closed';
    return [{ at: events.at(-1)?.at ?? 0, message: `${name}, ${closed}, ended with ${exit}` }];
  });
}
