import { showNames, duration } from '../core/display.js';
import type { LockInspection, PermitInspection, TakenPermits } from '../core/operator/inspector.js';
import { resolveResources } from '../core/settings/resources.js';
import { resolvePermits, type Settings } from '../core/settings/settings.js';
import {
  answerOf,
  type Context,
  type Entry,
  inSession,
  readEntry,
  type Session,
  type SessionMaster,
} from './session.js';
import {
  asJson,
  type Paint,
  prefixHint,
  sharedByWords,
  slotsTable,
  slotsWords,
  summaryOf,
  table,
  type Terminal,
  waitingWords,
} from './terminal.js';
import { RESERVED, type Target } from '../core/operator/forced-release.js';
import { REVOKED } from '../core/holder.js';
import { SystemClock } from '../runtime/system-clock.js';
import { describeReply, type MasterReport } from '../core/errors.js';
import { askAll } from '../core/acquire/quorum-call.js';
import { REVOKE } from '../redis/scripts/revoke.lua.js';
import { isFailure, keyOf, namesOf } from './contact.js';

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

function notesOn({ resource, state, sharedBy }: LockInspection, beyond: readonly number[]): string[] {
  const [name, sharing] = [showNames([resource]), sharedBy === undefined ? '' : `, ${sharedByWords(sharedBy)}`];
  return [
    ...(beyond.length > 0
      ? [`more permits of this name are taken: ${slotsWords(beyond)}. Give the number that the application gives`]
      : []),
    ...(state === 'held' ? [`${name} is held as a lock${sharing}: inspect it without --permits`] : []),
  ];
}

export interface HeldKey {
  readonly member: SessionMaster;
  readonly entry: Entry;
}

export interface Found {
  readonly held: readonly HeldKey[];
  // Revoked earlier, and not expired yet.
  readonly revoked: readonly HeldKey[];
  readonly unasked: readonly MasterReport[];
}

interface Taking extends MasterReport {
  // Milliseconds until the key expires; `undefined` if the holder may still have it.
  readonly left: number | undefined;
}

export async function find({ members, absent }: Session, target: Target, settings: Settings): Promise<Found> {
  const key = keyOf(target, settings);
  const entries = await Promise.all(members.map(({ contact }) => readEntry(contact, key)));
  const kept: HeldKey[] = [];
  const unasked = [...absent];
  members.forEach((member, i) => {
    const entry = entries[i];
    if (entry && 'code' in entry) unasked.push({ master: member.contact.name, answer: answerOf(entry) });
    else if (entry && !entry.value.startsWith(RESERVED)) kept.push({ member, entry });
  });
  const isRevoked = ({ entry }: HeldKey): boolean => entry.value === REVOKED;
  return { held: kept.filter((one) => !isRevoked(one)), revoked: kept.filter(isRevoked), unasked };
}

// The holder cannot extend it any more. The lock of a later holder is left alone.
export async function revoke({ member, entry }: HeldKey, target: Target, settings: Settings): Promise<Taking> {
  const { contact } = member;
  const key = keyOf(target, settings);
  const place = contact.at(key);
  const outcome = await place.call('EVAL', REVOKE, 1, place.stored(key), entry.value, REVOKED);
  if (isFailure(outcome)) return { master: contact.name, answer: answerOf(outcome), left: undefined };
  return { master: contact.name, answer: undefined, left: Number(outcome.value) };
}

// As the holder that was found would, so that the next waiter is notified.
export async function free({ member, entry }: HeldKey, target: Target, settings: Settings): Promise<Taking> {
  const { master } = member;
  const { keys, queues } = namesOf(target, settings);
  const request = { op: 'release', keys, queues, token: entry.value, keepFor: 0, ttl: settings.maxTtl } as const;
  const [report] = await askAll({
    masters: [master],
    request,
    clock: new SystemClock(),
    timeout: settings.masterTimeout,
  });
  const answer = report?.answer;
  return { master: master.name, answer, left: answer?.kind === 'granted' ? 0 : undefined };
}

// Permits of the name are shown too: they do not exclude its lock.
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
