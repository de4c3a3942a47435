import type { MasterReport } from '../index.js';
import * as admin from '../admin/admin.js';
import { describeReply, display, inspections } from '../internal.js';
import { type CommandContext, operator, UsageError } from './session.js';
import { heldBy, prefixHint, sharedByWords, slotsWords, table } from './terminal.js';

const AT_ONCE =
  'a holder that is alive is told with its next extension, and works on until then, and calls that wait in its process are not ' +
  'woken: a release without --at-once prevents both';

interface ReleaseOptions {
  readonly permit?: string;
  readonly yes?: boolean;
  readonly atOnce?: boolean;
}

// Exit status 1: the lock may still be held, nothing was held, or the operator did not confirm.
export async function release(context: CommandContext, key: string, options: ReleaseOptions): Promise<number> {
  const [resource = ''] = admin.resolveResources('key', key);
  const target = { resource, ...(options.permit !== undefined && { slot: slotOf(options.permit) }) };
  return admin.inSession(context, (session) => releaseIn(session, context, target, options));
}

function slotOf(given: string): number {
  if (/^\d{1,3}$/.test(given)) return Number(given);
  throw new UsageError('--permit must be the slot of a permit, from 0 to 999: inspect shows the slots');
}

async function releaseIn(
  session: admin.Session,
  context: CommandContext,
  target: inspections.Target,
  { yes = false, atOnce = false }: ReleaseOptions,
): Promise<number> {
  const { terminal, json } = context;
  const { inspector } = session.redlock;
  const found = await inspector.owners(target);
  const owners = atOnce ? { ...found, held: [...found.held, ...found.revoked], revoked: [] } : found;
  if (found.unasked.some(isWrongType)) {
    const refusal = await whyNotShared(session, target);
    if (refusal !== undefined) return refuse(target, refusal, context);
  }
  if (owners.held.length === 0) {
    return nothingToDo(found, { target, taken: await takenSlots(session, target) }, context);
  }
  if (!json) showFound(found, target, context);
  if (!yes && !(await confirm(target, owners, atOnce, context))) {
    terminal.complain(`${inspections.titleOf(target)} was not released`);
    return 1;
  }
  const { outcome, unreached } = await (atOnce ? inspector.free(target, owners) : inspector.revoke(target, owners));
  const mode: inspections.AuditRecord['mode'] = atOnce ? 'at-once' : 'revoked';
  const record = {
    at: new Date().toISOString(),
    by: operator(),
    ...target,
    key: inspector.keyOf(target),
    mode,
    ...outcome,
  };
  if (json) terminal.print(JSON.stringify(record, null, 2));
  else report(record, unreached, context);
  return record.released ? 0 : 1;
}

// Shared holders, or the data of another program.
function isWrongType({ answer }: MasterReport): boolean {
  return answer?.kind === 'refused' && answer.code === 'WRONGTYPE';
}

async function whyNotShared({ redlock }: admin.Session, { resource }: inspections.Target): Promise<string | undefined> {
  const { sharedBy, remaining } = await redlock.inspector.inspect(resource);
  // A leftover on a minority of masters is not shared.
  if (sharedBy === undefined || sharedBy === 0) return undefined;
  const left = remaining === undefined ? '' : `, in at most ${display.duration(remaining)}`;
  return (
    `is ${sharedByWords(sharedBy)}, and a shared lock cannot be taken away. A holder that has crashed ends by itself${left}; ` +
    'stop the processes that still extend theirs'
  );
}

function refuse(target: inspections.Target, problem: string, { terminal, json }: CommandContext): number {
  const reason = `${inspections.titleOf(target)} ${problem}`;
  if (json) terminal.print(JSON.stringify({ ...target, released: false, reason }, null, 2));
  else terminal.complain(reason);
  return 1;
}

async function takenSlots({ redlock }: admin.Session, { resource }: inspections.Target): Promise<readonly number[]> {
  const permits = await redlock.inspector.takenPermits(resource);
  return permits?.slots.map(({ slot }) => slot) ?? [];
}

interface Missed {
  readonly target: inspections.Target;
  readonly taken: readonly number[];
}

function hintFor({ target, taken }: Missed, { settings }: CommandContext): string | undefined {
  const [first] = taken;
  if (first === undefined && target.resource.includes('*')) {
    return `a pattern is not accepted here: list ${display.showNames([target.resource])} shows the names`;
  }
  if (first === undefined) return prefixHint(target.resource, settings);
  const permits = taken.length === 1 ? 'the permit' : 'the permits';
  const verb = taken.length === 1 ? 'is' : 'are';
  return `${permits} ${slotsWords(taken)} of this name ${verb} taken, and --permit ${first} would release that one`;
}

function nothingToDo({ revoked, unasked }: inspections.Owners, missed: Missed, context: CommandContext): number {
  const { target } = missed;
  const { terminal, json, sources } = context;
  const enough = sources.length - unasked.length >= admin.quorumOf(sources.length);
  const [first] = revoked;
  const state = first
    ? `was released already, and is free in at most ${display.duration(first.remaining)}`
    : ['is not held, so nothing was released', hintFor(missed, context)].filter(Boolean).join(': ');
  const reason = `${inspections.titleOf(target)} ${enough ? state : 'may be held: too few masters can be asked'}`;
  if (json) terminal.print(JSON.stringify({ ...target, released: false, reason }, null, 2));
  else terminal.print(reason);
  return enough && first ? 0 : 1;
}

function showFound(
  { held, revoked, unasked }: inspections.Owners,
  target: inspections.Target,
  { terminal }: CommandContext,
): void {
  const row = ({ master, holder, remaining }: inspections.Owners['held'][number], state: string): string[] => {
    const by = holder ? ` by ${heldBy(holder)}` : '';
    return [master, `${state}${by}, ${display.duration(remaining < 0 ? undefined : remaining)} left`];
  };
  const rows = [
    ...held.map((one) => row(one, 'held')),
    ...revoked.map((one) => row(one, 'released already')),
    ...unasked.map(({ master, answer }) => [master, describeReply(answer)]),
  ];
  terminal.print(table(['master', inspections.titleOf(target)], rows));
}

async function confirm(
  target: inspections.Target,
  { held }: inspections.Owners,
  atOnce: boolean,
  { terminal, sources }: CommandContext,
): Promise<boolean> {
  const name = inspections.titleOf(target);
  terminal.complain(
    [
      `${name} is held on ${held.length} of ${display.counted(sources.length, 'master')}, by a process that may be working right now.`,
      atOnce
        ? 'It is free at once: others may start meanwhile, and a holder that still extends it may take it again.'
        : 'Its holder cannot extend it any more. No other process gets it before the remaining time has passed.',
      'The work is not undone. Only a fencing token that is checked where it writes keeps it from writing late.',
    ].join('\n'),
  );
  const answer = await terminal.ask('Release it? Type yes or y: ');
  return ['y', 'yes'].includes(answer?.trim().toLowerCase() ?? '');
}

function report(
  record: inspections.AuditRecord,
  unreached: readonly MasterReport[],
  { terminal }: CommandContext,
): void {
  const { released, mode, left } = record;
  for (const { master, answer } of unreached) {
    terminal.complain(`${master} may still have it: ${describeReply(answer)}`);
  }
  const when = mode === 'at-once' ? 'now' : `in at most ${display.duration(left)}`;
  if (released) {
    terminal.print(terminal.paint('bold', `${inspections.titleOf(record)} is free ${when}`));
    if (mode === 'at-once') terminal.print(AT_ONCE);
  } else terminal.complain('too few masters gave it up: its holder may still rely on it');
  terminal.print(inspections.auditLine(record));
}
