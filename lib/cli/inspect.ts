import { describeReply, type MasterReport } from '../core/errors.js';
import type { LockInspection, TakenPermits } from '../core/inspection.js';
import { resolveResources } from '../core/settings/resources.js';
import { showNames } from '../core/display.js';
import type { Context } from './context.js';
import { prefixHint } from './prefix-hint.js';
import { inSession } from './session.js';
import { duration, type Paint, table } from './table.js';
import type { Terminal } from './terminal.js';
import { asJson, sharedByWords, slotsTable, slotsWords, summaryOf, waitingWords } from './words.js';

/**
 * Shows the answer of each master about a resource, and which permits of its name are taken: they do not exclude its lock.
 * Resolves with the exit status: 1 if too few masters answered.
 */
export async function inspect(context: Context, key: string): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const { inspection, permits } = await inSession(context, async ({ redlock }) => ({
    inspection: await redlock.inspector.inspect(resource),
    permits: await redlock.inspector.takenPermits(resource),
  }));
  const taken = permits && permits.slots.length > 0 ? permits : undefined;
  const { terminal, json } = context;
  if (json) {
    const takenPermits = taken && { ...taken, slots: taken.slots.map(asJson) };
    terminal.print(JSON.stringify({ ...asJson(inspection), takenPermits }, null, 2));
  } else {
    show(inspection, context);
    if (taken) showPermits(taken, inspection, terminal);
    const hint = inspection.state === 'free' && !taken ? prefixHint(resource, context.settings) : undefined;
    if (hint !== undefined) terminal.complain(`note: ${hint}`);
    if (!permits && inspection.state !== 'unknown') {
      terminal.complain('note: too few masters answered the question whether permits of this name are taken');
    }
  }
  return inspection.state === 'unknown' ? 1 : 0;
}

function show(inspection: LockInspection, { terminal }: Context): void {
  const rows = inspection.masters.map((report) => [report.master, wordsOn(report)]);
  terminal.print(table(['master', 'reply'], rows, paintReply(terminal)));
  const { holder, sharedBy, waiting } = inspection;
  if (sharedBy) terminal.print(sharedByWords(sharedBy));
  if (holder) terminal.print(`held by ${holder.instance} since ${holder.since.toISOString()}`);
  if (waiting > 0) terminal.print(waitingWords(waiting));
  terminal.print(terminal.paint('bold', summaryOf(inspection)));
}

function showPermits({ slots, waiting }: TakenPermits, { resource, state }: LockInspection, terminal: Terminal): void {
  const permits = `${slots.length} ${slots.length === 1 ? 'permit' : 'permits'} of ${showNames([resource])}`;
  const lock = state === 'free' ? 'no lock of this name, but ' : 'beside the lock, ';
  terminal.print(slotsTable(slots));
  if (waiting > 0) terminal.print(`${waitingWords(waiting)} for a permit`);
  const verb = slots.length === 1 ? 'is' : 'are';
  const line = `${lock}${permits} ${verb} taken: ${slotsWords(slots.map(({ slot }) => slot))}`;
  terminal.print(terminal.paint('bold', line));
}

function wordsOn({ answer }: MasterReport): string {
  if (answer?.kind === 'held') {
    const sharing = answer.sharedBy === undefined ? '' : `, ${sharedByWords(answer.sharedBy)}`;
    return answer.remaining === undefined ? 'held' : `held${sharing}, ${duration(answer.remaining)} left`;
  }
  return answer?.kind === 'granted' ? 'free' : describeReply(answer);
}

function paintReply(terminal: Terminal): Paint {
  return (line, { row, column }) => {
    if (column !== 1) return line;
    const reply = row[column] ?? '';
    return terminal.paint(reply === 'free' ? 'green' : reply.startsWith('held') ? 'yellow' : 'red', line);
  };
}
