import { describeReply, type MasterReport } from '../core/errors.js';
import type { LockHolder } from '../core/holder.js';
import type { LockInspection } from '../core/inspection.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';
import { showNames } from '../core/display.js';
import type { Context } from './context.js';
import { prefixHint } from './prefix-hint.js';
import { inSession } from './session.js';
import { duration, type Paint, table } from './table.js';
import type { Terminal } from './terminal.js';

/** Shows the answer of each master about a resource. Resolves with the exit status: 1 if too few masters answered. */
export async function inspect(context: Context, key: string): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const inspection = await inSession(context, ({ redlock }) => redlock.inspect(resource));
  const { terminal, json } = context;
  if (json) terminal.print(JSON.stringify(asJson(inspection), null, 2));
  else {
    const rows = inspection.masters.map((report) => [report.master, wordsOn(report)]);
    terminal.print(table(['master', 'reply'], rows, paintReply(terminal)));
    const { holder, sharedBy, waiting } = inspection;
    if (sharedBy) terminal.print(sharedByWords(sharedBy));
    if (holder) terminal.print(`held by ${holder.instance} since ${holder.since.toISOString()}`);
    if (waiting > 0) terminal.print(waitingWords(waiting));
    terminal.print(terminal.paint('bold', summaryOf(inspection)));
    const hint = inspection.state === 'free' ? prefixHint(resource, context.settings) : undefined;
    if (hint !== undefined) terminal.complain(`note: ${hint}`);
  }
  return inspection.state === 'unknown' ? 1 : 0;
}

/** How many holders have a shared lock, for people. */
export function sharedByWords(sharedBy: number): string {
  return `shared by ${sharedBy} ${sharedBy === 1 ? 'holder' : 'holders'}`;
}

/** The name of a holder, and how long it has held the lock by the clocks of both machines, for people. */
export function heldBy({ instance, since }: LockHolder): string {
  return `${instance} for ${duration(Math.max(0, Date.now() - since.getTime()))}`;
}

/** Summarizes the answers of the masters in one line. */
export function summaryOf({ resource, state, remaining, masters }: LockInspection): string {
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  const count = `${held} of ${masters.length} masters, ${quorumOf(masters.length)} make a lock`;
  const left = state === 'held' && remaining !== undefined ? `, for ${duration(remaining)} unless it is extended` : '';
  return `${showNames([resource])} is ${state}${left} (held on ${count})`;
}

/** How many processes wait, for people. */
export function waitingWords(waiting: number): string {
  return `${waiting} ${waiting === 1 ? 'process waits' : 'processes wait'} in line`;
}

function wordsOn({ answer }: MasterReport): string {
  if (answer?.kind === 'held') {
    const sharing = answer.sharedBy === undefined ? '' : `, ${sharedByWords(answer.sharedBy)}`;
    return answer.remaining === undefined ? 'held' : `held${sharing}, ${duration(answer.remaining)} left`;
  }
  return answer?.kind === 'granted' ? 'free' : describeReply(answer);
}

/** To an inspection, `granted` means that the key is free. */
export function asJson(inspection: LockInspection): object {
  const masters = inspection.masters.map(({ master, answer }) => {
    return { master, answer: answer?.kind === 'granted' ? { kind: 'free' } : answer };
  });
  return { ...inspection, masters };
}

function paintReply(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (column !== 1) return line;
    const reply = row[column] ?? '';
    return terminal.paint(reply === 'free' ? 'green' : reply.startsWith('held') ? 'yellow' : 'red', line);
  };
}
