import { auditLine, type AuditRecord, type Owners, type Target, titleOf } from '../core/inspector.js';
import { holderFrom } from '../core/holder.js';
import { Keyspace } from '../core/keyspace.js';
import { describeReply, type MasterReport } from '../core/errors.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';
import { type CommandContext, inSession, operator, type Session, UsageError } from './session.js';
import { heldBy, prefixHint, sharedByWords, slotsWords, table } from './terminal.js';
import { counted, duration, showNames } from '../core/display.js';

const AT_ONCE =
  'a holder that is alive takes it back with its next extension, unless another one has acquired it, and calls that wait ' +
  'in its process are not woken: a release without --at-once prevents both';

interface ReleaseOptions {
  readonly permit?: string;
  readonly yes?: boolean;
  readonly atOnce?: boolean;
}

// Exit status 1: the lock may still be held, nothing was held, or the operator did not confirm.
export async function release(context: CommandContext, key: string, options: ReleaseOptions): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  const target = { resource, ...(options.permit !== undefined && { slot: slotOf(options.permit) }) };
  return inSession(context, (session) => releaseIn(session, context, target, options));
}

function slotOf(given: string): number {
  if (/^\d{1,3}$/.test(given)) return Number(given);
  throw new UsageError('--permit must be the slot of a permit, from 0 to 999: inspect shows the slots');
}

async function releaseIn(
  session: Session,
  context: CommandContext,
  target: Target,
  { yes = false, atOnce = false }: ReleaseOptions,
): Promise<number> {
  const { settings, terminal, json } = context;
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
    terminal.complain(`${titleOf(target)} was not released`);
    return 1;
  }
  const { outcome, unreached } = await (atOnce ? inspector.free(target, owners) : inspector.revoke(target, owners));
  const [key = ''] = new Keyspace(settings.keyPrefix).namesOfTarget(target).keys;
  const mode: AuditRecord['mode'] = atOnce ? 'at-once' : 'revoked';
  const record = { at: new Date().toISOString(), by: operator(), ...target, key, mode, ...outcome };
  if (json) terminal.print(JSON.stringify(record, null, 2));
  else report(record, unreached, context);
  return record.released ? 0 : 1;
}

// Shared holders, or the data of another program.
function isWrongType({ answer }: MasterReport): boolean {
  return answer?.kind === 'refused' && answer.code === 'WRONGTYPE';
}

async function whyNotShared({ redlock }: Session, { resource }: Target): Promise<string | undefined> {
  const { sharedBy, remaining } = await redlock.inspector.inspect(resource);
  // A leftover on a minority of masters is not shared.
  if (sharedBy === undefined || sharedBy === 0) return undefined;
  const left = remaining === undefined ? '' : `, in at most ${duration(remaining)}`;
  return (
    `is ${sharedByWords(sharedBy)}, and a shared lock cannot be taken away. A holder that has crashed ends by itself${left}; ` +
    'stop the processes that still extend theirs'
  );
}

function refuse(target: Target, problem: string, { terminal, json }: CommandContext): number {
  const reason = `${titleOf(target)} ${problem}`;
  if (json) terminal.print(JSON.stringify({ ...target, released: false, reason }, null, 2));
  else terminal.complain(reason);
  return 1;
}

async function takenSlots({ redlock }: Session, { resource }: Target): Promise<readonly number[]> {
  const permits = await redlock.inspector.takenPermits(resource);
  return permits?.slots.map(({ slot }) => slot) ?? [];
}

interface Missed {
  readonly target: Target;
  readonly taken: readonly number[];
}

function hintFor({ target, taken }: Missed, { settings }: CommandContext): string | undefined {
  const [first] = taken;
  if (first === undefined && target.resource.includes('*')) {
    return `a pattern is not accepted here: list ${showNames([target.resource])} shows the names`;
  }
  if (first === undefined) return prefixHint(target.resource, settings);
  const permits = taken.length === 1 ? 'the permit' : 'the permits';
  const verb = taken.length === 1 ? 'is' : 'are';
  return `${permits} ${slotsWords(taken)} of this name ${verb} taken, and --permit ${first} would release that one`;
}

function nothingToDo({ revoked, unasked }: Owners, missed: Missed, context: CommandContext): number {
  const { target } = missed;
  const { terminal, json, sources } = context;
  const enough = sources.length - unasked.length >= quorumOf(sources.length);
  const [first] = revoked;
  const state = first
    ? `was released already, and is free in at most ${duration(first.remaining)}`
    : ['is not held, so nothing was released', hintFor(missed, context)].filter(Boolean).join(': ');
  const reason = `${titleOf(target)} ${enough ? state : 'may be held: too few masters can be asked'}`;
  if (json) terminal.print(JSON.stringify({ ...target, released: false, reason }, null, 2));
  else terminal.print(reason);
  return enough && first ? 0 : 1;
}

function showFound({ held, revoked, unasked }: Owners, target: Target, { terminal }: CommandContext): void {
  const row = ({ master, owner, remaining }: Owners['held'][number], state: string): string[] => {
    const holder = holderFrom(owner);
    const by = holder ? ` by ${heldBy(holder)}` : '';
    return [master, `${state}${by}, ${duration(remaining < 0 ? undefined : remaining)} left`];
  };
  const rows = [
    ...held.map((one) => row(one, 'held')),
    ...revoked.map((one) => row(one, 'released already')),
    ...unasked.map(({ master, answer }) => [master, describeReply(answer)]),
  ];
  terminal.print(table(['master', titleOf(target)], rows));
}

async function confirm(
  target: Target,
  { held }: Owners,
  atOnce: boolean,
  { terminal, sources }: CommandContext,
): Promise<boolean> {
  const name = titleOf(target);
  terminal.complain(
    [
      `${name} is held on ${held.length} of ${counted(sources.length, 'master')}, by a process that may be working right now.`,
      atOnce
        ? 'It is free at once: others may start meanwhile, and a holder that still extends it may take it again.'
        : 'Its holder cannot extend it any more. No other process gets it before the remaining time has passed.',
      'The work is not undone. Only a fencing token that is checked where it writes keeps it from writing late.',
    ].join('\n'),
  );
  const answer = await terminal.ask('Release it? Type yes or y: ');
  return ['y', 'yes'].includes(answer?.trim().toLowerCase() ?? '');
}

function report(record: AuditRecord, unreached: readonly MasterReport[], { terminal }: CommandContext): void {
  const { released, mode, left } = record;
  for (const { master, answer } of unreached) {
    terminal.complain(`${master} may still have it: ${describeReply(answer)}`);
  }
  const when = mode === 'at-once' ? 'now' : `in at most ${duration(left)}`;
  if (released) {
    terminal.print(terminal.paint('bold', `${titleOf(record)} is free ${when}`));
    if (mode === 'at-once') terminal.print(AT_ONCE);
  } else terminal.complain('too few masters gave it up: its holder may still rely on it');
  terminal.print(auditLine(record));
}
