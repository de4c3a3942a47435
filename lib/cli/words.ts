import { quorumOf } from '../core/acquire/quorum-call.js';
import { showNames } from '../core/display.js';
import type { MasterReport } from '../core/errors.js';
import type { LockHolder } from '../core/holder.js';
import type { LockInspection, SlotInspection } from '../core/inspection.js';
import { duration, table } from './table.js';

/** Number of slots that a line names. */
const MOST_SLOTS = 10;

/** How many holders have a shared lock, for people. */
export function sharedByWords(sharedBy: number): string {
  return `shared by ${sharedBy} ${sharedBy === 1 ? 'holder' : 'holders'}`;
}

/** The name of a holder, and how long it has held the lock by the clocks of both machines, for people. */
export function heldBy({ instance, since }: LockHolder): string {
  return `${instance} for ${duration(Math.max(0, Date.now() - since.getTime()))}`;
}

/** How many processes wait, for people. */
export function waitingWords(waiting: number): string {
  return `${waiting} ${waiting === 1 ? 'process waits' : 'processes wait'} in line`;
}

/** Some slots, for people: `#0, #1`. */
export function slotsWords(slots: readonly number[]): string {
  const more = slots.length > MOST_SLOTS ? ` and ${slots.length - MOST_SLOTS} more` : '';
  const shown = slots.slice(0, MOST_SLOTS).map((slot) => `#${slot}`);
  return shown.join(', ') + more;
}

/** Summarizes the answers of the masters in one line. */
export function summaryOf({ resource, state, remaining, masters }: LockInspection): string {
  const count = `${heldOn(masters)} of ${masters.length} masters, ${quorumOf(masters.length)} make a lock`;
  const left = state === 'held' && remaining !== undefined ? `, for ${duration(remaining)} unless it is extended` : '';
  return `${showNames([resource])} is ${state}${left} (held on ${count})`;
}

/** Draws permits, one in a row. */
export function slotsTable(slots: readonly SlotInspection[]): string {
  return table(
    ['slot', 'state', 'remaining', 'masters', 'holder'],
    slots.map(({ slot, state, remaining, masters, holder }) => [
      ...[`#${slot}`, state, state === 'held' ? duration(remaining) : '-'],
      ...[`${heldOn(masters)} of ${masters.length}`, holder ? heldBy(holder) : '-'],
    ]),
  );
}

/** To an inspection, `granted` means that the key is free. */
export function asJson(inspection: LockInspection | SlotInspection): object {
  const masters = inspection.masters.map(({ master, answer }) => {
    return { master, answer: answer?.kind === 'granted' ? { kind: 'free' } : answer };
  });
  return { ...inspection, masters };
}

function heldOn(masters: readonly MasterReport[]): number {
  return masters.filter(({ answer }) => answer?.kind === 'held').length;
}
