import { type AuditRecord, auditLine } from '../core/audit.js';
import { holderFrom } from '../core/holder.js';
import { Keyspace } from '../core/keyspace.js';
import { describeReply, type MasterReport } from '../core/errors.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { resolveResources } from '../core/settings/resources.js';
import { showNames } from '../core/display.js';
import { operator, type ReleaseRecord } from './audit.js';
import type { Context } from './context.js';
import { heldBy } from './inspect.js';
import { inSession, type Session } from './session.js';
import { prefixHint } from './prefix-hint.js';
import { duration, table } from './table.js';
import { find, type Found, free, type HeldKey, revoke } from './taking.js';

/** Options of the command `release`. */
export interface ReleaseOptions {
  readonly yes?: boolean;
  readonly atOnce?: boolean;
}

/**
 * Takes a lock away from its holder. Resolves with the exit status: 1 if the lock may still be held, if nothing was held,
 * or if the operator did not confirm.
 */
export async function release(context: Context, key: string, options: ReleaseOptions): Promise<number> {
  const [resource = ''] = resolveResources('key', key);
  return inSession(context, (session) => releaseIn(session, context, resource, options));
}

async function releaseIn(
  session: Session,
  context: Context,
  resource: string,
  { yes = false, atOnce = false }: ReleaseOptions,
): Promise<number> {
  const { settings, terminal, json } = context;
  const found = await find(session, resource, settings);
  const held = atOnce ? [...found.held, ...found.revoked] : found.held;
  if (held.length === 0) return nothingToDo(found, resource, context);
  if (!json) showFound(found, resource, context);
  if (!yes && !(await confirm(resource, held, atOnce, context))) {
    terminal.complain(`${showNames([resource])} was not released`);
    return 1;
  }
  const act = atOnce ? free : revoke;
  const takings = await Promise.all(held.map((one) => act(one, resource, settings)));
  const already = atOnce ? 0 : found.revoked.length;
  const taken = takings.filter(({ left }) => left !== undefined);
  const unreached = [...found.unasked, ...takings.filter(({ left }) => left === undefined)];
  const masters = context.sources.length;
  const record: ReleaseRecord = {
    ...{
      at: new Date().toISOString(),
      by: operator(),
      resource,
      key: new Keyspace(settings.keyPrefix).keyOf(resource),
    },
    mode: atOnce ? 'at-once' : 'revoked',
    // Too few masters are left for a quorum that could hold or extend the lock.
    released: taken.length + already > masters - quorumOf(masters) || unreached.length === 0,
    masters,
    taken: taken.map(({ master }) => master),
    unreached: unreached.map(({ master }) => master),
    left: Math.max(0, ...taken.map(({ left = 0 }) => left)),
  };
  if (json) terminal.print(JSON.stringify(record, null, 2));
  else report(record, unreached, context);
  return record.released ? 0 : 1;
}

function nothingToDo({ revoked, unasked }: Found, resource: string, context: Context): number {
  const { terminal, json, sources, settings } = context;
  const enough = sources.length - unasked.length >= quorumOf(sources.length);
  const [first] = revoked;
  const state = first
    ? `was released already, and is free in at most ${duration(first.entry.remaining)}`
    : ['is not held, so nothing was released', prefixHint(resource, settings)].filter(Boolean).join(': ');
  const reason = `${showNames([resource])} ${enough ? state : 'may be held: too few masters can be asked'}`;
  if (json) terminal.print(JSON.stringify({ resource, released: false, reason }, null, 2));
  else terminal.print(reason);
  return enough && first ? 0 : 1;
}

function showFound({ held, revoked, unasked }: Found, resource: string, { terminal }: Context): void {
  const row = ({ member, entry }: HeldKey, state: string): string[] => {
    const holder = holderFrom(entry.value);
    const by = holder ? ` by ${heldBy(holder)}` : '';
    return [member.contact.name, `${state}${by}, ${duration(entry.remaining)} left`];
  };
  const rows = [
    ...held.map((one) => row(one, 'held')),
    ...revoked.map((one) => row(one, 'released already')),
    ...unasked.map(({ master, answer }) => [master, describeReply(answer)]),
  ];
  terminal.print(table(['master', showNames([resource])], rows));
}

async function confirm(
  resource: string,
  held: readonly HeldKey[],
  atOnce: boolean,
  { terminal, sources }: Context,
): Promise<boolean> {
  const name = showNames([resource]);
  terminal.complain(
    [
      `${name} is held on ${held.length} of ${sources.length} masters, by a process that may be working right now.`,
      atOnce
        ? 'It is free at once: others may start meanwhile, and a holder that still extends it may take it again.'
        : 'Its holder cannot extend it any more. No other process gets it before the remaining time has passed.',
      'The work is not undone. Only a fencing token that is checked where it writes keeps it from writing late.',
    ].join('\n'),
  );
  const answer = await terminal.ask('Release it? Type yes: ');
  return answer?.trim().toLowerCase() === 'yes';
}

function report(record: AuditRecord, unreached: readonly MasterReport[], { terminal }: Context): void {
  const { released, mode, resource, left } = record;
  for (const { master, answer } of unreached) {
    terminal.complain(`${master} may still have it: ${describeReply(answer)}`);
  }
  const when = mode === 'at-once' ? 'now' : `in at most ${duration(left)}`;
  if (released) terminal.print(terminal.paint('bold', `${showNames([resource])} is free ${when}`));
  else terminal.complain('too few masters gave it up: its holder may still rely on it');
  terminal.print(auditLine(record));
}
