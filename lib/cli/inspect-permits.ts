import { showNames } from '../core/display.js';
import type { LockInspection, PermitInspection } from '../core/inspection.js';
import { resolveResources } from '../core/settings/resources.js';
import { resolvePermits } from '../core/settings/settings.js';
import type { Context } from './context.js';
import { inSession } from './session.js';
import { asJson, sharedByWords, slotsTable, slotsWords, waitingWords } from './words.js';

/**
 * Shows which permits of a resource are taken. Resolves with the exit status: 1 if too few masters answered.
 *
 * @param given the number of permits, as typed
 * @throws {RedlockConfigError} for a number that no application can give
 */
export async function inspectPermits(context: Context, key: string, given: string): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const { terminal, json } = context;
  const permits = resolvePermits('permits', Number(given));
  const { inspection, lock, taken } = await inSession(context, async ({ redlock }) => ({
    inspection: await redlock.inspector.inspectPermits(resource, permits),
    lock: await redlock.inspector.inspect(resource),
    taken: await redlock.inspector.takenPermits(resource),
  }));
  const { slots, waiting } = inspection;
  const beyond = (taken?.slots ?? []).map(({ slot }) => slot).filter((slot) => slot >= permits);
  if (json) {
    const others = { ...(beyond.length > 0 && { beyond }), ...(lock.state === 'held' && { lock: 'held' }) };
    terminal.print(JSON.stringify({ ...inspection, slots: slots.map(asJson), ...others }, null, 2));
  } else {
    terminal.print(slotsTable(slots));
    if (waiting > 0) terminal.print(waitingWords(waiting));
    terminal.print(terminal.paint('bold', permitSummaryOf(inspection)));
    for (const note of notesOn(lock, beyond)) terminal.complain(`note: ${note}`);
  }
  return slots.some(({ state }) => state === 'unknown') ? 1 : 0;
}

function permitSummaryOf({ resource, permits, taken, slots }: PermitInspection): string {
  const unknown = slots.filter(({ state }) => state === 'unknown').length;
  const others = unknown > 0 ? `, ${unknown} unknown` : '';
  return `${showNames([resource])}: ${taken} of ${permits} permits taken${others}`;
}

/** What the number that was typed leaves out. */
function notesOn({ resource, state, sharedBy }: LockInspection, beyond: readonly number[]): string[] {
  const [name, sharing] = [showNames([resource]), sharedBy === undefined ? '' : `, ${sharedByWords(sharedBy)}`];
  return [
    ...(beyond.length > 0
      ? [`more permits of this name are taken: ${slotsWords(beyond)}. Give the number that the application gives`]
      : []),
    ...(state === 'held' ? [`${name} is held as a lock${sharing}: inspect it without --permits`] : []),
  ];
}
