import { showNames } from '../core/display.js';
import type { LockInspection, PermitInspection } from '../core/inspection.js';
import { resolveResources } from '../core/settings/resources.js';
import { resolveCall } from '../core/settings/settings.js';
import type { Context } from './context.js';
import { asJson, heldBy, waitingWords } from './inspect.js';
import { inSession } from './session.js';
import { duration, table } from './table.js';

/**
 * Shows which permits of a resource are taken. Resolves with the exit status: 1 if too few masters answered.
 *
 * @param given the number of permits, as typed
 * @throws {RedlockConfigError} for a number that no application can give
 */
export async function inspectPermits(context: Context, key: string, given: string): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const { settings, terminal, json } = context;
  const { permits = 1 } = resolveCall(settings, { permits: Number(given) }, 'inspect');
  const inspection = await inSession(context, ({ redlock }) => redlock.inspectPermits(resource, permits));
  const { slots, waiting } = inspection;
  if (json) terminal.print(JSON.stringify({ ...inspection, slots: slots.map(asJson) }, null, 2));
  else {
    terminal.print(table(['permit', 'state', 'remaining', 'masters', 'holder'], slots.map(rowOf)));
    if (waiting > 0) terminal.print(waitingWords(waiting));
    terminal.print(terminal.paint('bold', summaryOf(inspection)));
  }
  return slots.some(({ state }) => state === 'unknown') ? 1 : 0;
}

function rowOf({ state, remaining, masters, holder }: LockInspection, slot: number): string[] {
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  const left = state === 'held' ? duration(remaining) : '-';
  return [String(slot), state, left, `${held} of ${masters.length}`, holder ? heldBy(holder) : '-'];
}

function summaryOf({ resource, permits, taken, slots }: PermitInspection): string {
  const unknown = slots.filter(({ state }) => state === 'unknown').length;
  const others = unknown > 0 ? `, ${unknown} unknown` : '';
  return `${showNames([resource])}: ${taken} of ${permits} permits taken${others}`;
}
