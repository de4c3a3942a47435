import type { LockInspection, MasterReply, MasterReport, PermitInspection, SlotInspection } from '../index.js';
import * as admin from '../admin/admin.js';
import { describeReply, display } from '../internal.js';
import type { CommandContext } from './session.js';
import {
  heldBy,
  isReleasedByForce,
  type Paint,
  prefixHint,
  sharedByWords,
  slotsWords,
  table,
  type Terminal,
} from './terminal.js';

export function inspect(
  context: CommandContext,
  key: string,
  { permits }: { readonly permits?: string },
): Promise<number> {
  const [resource = ''] = admin.resolveResources('key', key);
  return permits === undefined ? inspectResource(context, resource) : inspectPermits(context, resource, permits);
}

async function inspectPermits(context: CommandContext, resource: string, given: string): Promise<number> {
  const { terminal, json } = context;
  const permits = admin.parsePermits('--permits', /^\d+$/.test(given) ? Number(given) : given);
  const { inspection, lock, taken } = await admin.inSession(context, async ({ redlock }) => ({
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

function slotsTable(slots: readonly SlotInspection[]): string {
  return table(
    ['slot', 'state', 'remaining', 'masters', 'holder'],
    slots.map(({ slot, state, remaining, masters, holder }) => [
      ...[`#${slot}`, state, state === 'held' ? display.duration(remaining) : '-'],
      ...[`${heldOn(masters)} of ${masters.length}`, holder ? heldBy(holder) : '-'],
    ]),
  );
}

// To an inspection, `granted` means that the key is free.
function asJson(inspection: LockInspection | SlotInspection): object {
  const masters = inspection.masters.map(({ master, answer }) => {
    return { master, answer: answer?.kind === 'granted' ? { kind: 'free' } : answer };
  });
  return { ...inspection, masters };
}

function permitSummaryOf({ resource, permits, taken, slots }: PermitInspection): string {
  const unknown = slots.filter(({ state }) => state === 'unknown').length;
  const others = unknown > 0 ? `, ${unknown} unknown` : '';
  return `${display.showNames([resource])}: ${taken} of ${display.counted(permits, 'permit')} taken${others}`;
}

function notesOn({ resource, state, sharedBy }: LockInspection, beyond: readonly number[]): string[] {
  const [name, sharing] = [display.showNames([resource]), sharedBy === undefined ? '' : `, ${sharedByWords(sharedBy)}`];
  return [
    ...(beyond.length > 0
      ? [`more permits of this name are taken: ${slotsWords(beyond)}. Give the number that the application gives`]
      : []),
    ...(state === 'held' ? [`${name} is held as a lock${sharing}: inspect it without --permits`] : []),
  ];
}

// Permits of the name are shown too: they do not exclude its lock.
async function inspectResource(context: CommandContext, resource: string): Promise<number> {
  const { inspection, permits, leader } = await admin.inSession(context, async ({ redlock: { inspector } }) => {
    const found = await inspector.inspect(resource);
    const leading = found.holder && (await inspector.leader(resource, found.holder).catch(() => undefined));
    return { inspection: found, permits: await inspector.takenPermits(resource), leader: leading };
  });
  const taken = permits && permits.slots.length > 0 ? permits : undefined;
  const { terminal, json } = context;
  if (json) {
    const takenPermits = taken && { ...taken, slots: taken.slots.map(asJson) };
    terminal.print(
      JSON.stringify({ ...asJson(inspection), takenPermits, term: leader?.term, data: leader?.data }, null, 2),
    );
  } else {
    show(inspection, context);
    if (leader?.term !== undefined) terminal.print(`leads in term ${leader.term}${dataWords(leader.data)}`);
    if (taken) showPermits(taken, inspection, terminal);
    const hint = inspection.state === 'free' && !taken ? prefixHint(resource, context.settings) : undefined;
    if (hint !== undefined) terminal.complain(`note: ${hint}`);
    if (!permits && inspection.state !== 'unknown') {
      terminal.complain('note: too few masters answered the question whether permits of this name are taken');
    }
  }
  return inspection.state === 'unknown' ? 1 : 0;
}

function show(inspection: LockInspection, { terminal }: CommandContext): void {
  const rows = inspection.masters.map((report) => [report.master, wordsOn(report)]);
  terminal.print(table(['master', 'reply'], rows, paintReply(terminal)));
  const { holder, sharedBy, waiting } = inspection;
  if (sharedBy) terminal.print(sharedByWords(sharedBy));
  if (holder) terminal.print(`held by ${holder.instance} since ${holder.since.toISOString()}`);
  if (waiting > 0) terminal.print(waitingWords(waiting));
  terminal.print(terminal.paint('bold', summaryOf(inspection)));
}

function waitingWords(waiting: number): string {
  return `${waiting} ${waiting === 1 ? 'process waits' : 'processes wait'} in line`;
}

function summaryOf({ resource, state, remaining, masters }: LockInspection): string {
  const quorum = admin.quorumOf(masters.length);
  const makes = `${quorum} ${quorum === 1 ? 'makes' : 'make'} a lock`;
  const count = `${heldOn(masters)} of ${display.counted(masters.length, 'master')}, ${makes}`;
  const end = isReleasedByForce(masters) ? 'at most, since it was released by force' : 'unless it is extended';
  const left = state === 'held' && remaining !== undefined ? `, for ${display.duration(remaining)} ${end}` : '';
  return `${display.showNames([resource])} is ${state}${left} (held on ${count})`;
}

function heldOn(masters: readonly MasterReport<MasterReply>[]): number {
  return masters.filter(({ answer }) => answer?.kind === 'held').length;
}

function dataWords(data: unknown): string {
  return data === undefined ? '' : `, data ${display.printable(JSON.stringify(data))}`;
}

function showPermits(
  { slots, waiting }: Pick<PermitInspection, 'slots' | 'waiting'>,
  { resource, state }: LockInspection,
  terminal: Terminal,
): void {
  const permits = `${display.counted(slots.length, 'permit')} of ${display.showNames([resource])}`;
  const lock = state === 'free' ? 'no lock of this name, but ' : 'beside the lock, ';
  terminal.print(slotsTable(slots));
  if (waiting > 0) terminal.print(`${waitingWords(waiting)} for a permit`);
  const verb = slots.length === 1 ? 'is' : 'are';
  const line = `${lock}${permits} ${verb} taken: ${slotsWords(slots.map(({ slot }) => slot))}`;
  terminal.print(terminal.paint('bold', line));
}

function wordsOn({ answer }: MasterReport<MasterReply>): string {
  if (answer?.kind === 'held') {
    const sharing = answer.sharedBy === undefined ? '' : `, ${sharedByWords(answer.sharedBy)}`;
    return answer.remaining === undefined ? 'held' : `held${sharing}, ${display.duration(answer.remaining)} left`;
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
