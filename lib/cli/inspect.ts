import { describeReply, type MasterReport } from '../core/errors.js';
import type { LockHolder } from '../core/holder.js';
import type { LockInspection } from '../core/inspection.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';
import { showNames } from '../core/display.js';
import type { Context } from './context.js';
import { inSession } from './session.js';
import { duration, table } from './table.js';

/** Shows the answer of each master about a resource. Resolves with the exit status: 1 if too few masters answered. */
export async function inspect(context: Context, key: string): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const inspection = await inSession(context, ({ redlock }) => redlock.inspect(resource));
  const { terminal, json } = context;
  if (json) terminal.print(JSON.stringify(inspection, null, 2));
  else {
    const rows = inspection.masters.map((report) => [report.master, wordsOn(report)]);
    terminal.print(table(['master', 'says'], rows));
    const { holder, waiting } = inspection;
    if (holder) terminal.print(`held by ${heldBy(holder)}`);
    if (waiting > 0) terminal.print(`${waiting} ${waiting === 1 ? 'process waits' : 'processes wait'} in line`);
    terminal.print(terminal.paint('bold', summaryOf(inspection)));
  }
  return inspection.state === 'unknown' ? 1 : 0;
}

/** The name of a holder, and since when it holds the lock, for people. */
export function heldBy({ instance, since }: LockHolder): string {
  return `${instance}, since ${since.toISOString()}`;
}

/** Summarizes the answers of the masters in one line. */
export function summaryOf({ resource, state, remaining, masters }: LockInspection): string {
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  const count = `${held} of ${masters.length} masters, ${quorumOf(masters.length)} make a lock`;
  const left = state === 'held' && remaining !== undefined ? `, for ${duration(remaining)} unless it is extended` : '';
  return `${showNames([resource])} is ${state}${left} (held on ${count})`;
}

function wordsOn({ answer }: MasterReport): string {
  return answer?.kind === 'granted' ? 'free' : describeReply(answer);
}
