import { Keyspace, NUL } from '../core/keyspace.js';
import type { MasterReport } from '../core/errors.js';
import { type LockInspection, summarize } from '../core/inspection.js';
import { holderFrom } from '../core/holder.js';
import { heldBy } from './inspect.js';
import { type HeldReply, type MasterReply, GRANTED } from '../core/master.interface.js';
import type { Settings } from '../core/settings/settings.js';
import { showNames } from '../core/display.js';
import { type Contact, type Failure, isFailure } from './contact.js';
import type { Context } from './context.js';
import { literally } from './pattern.js';
import { answerOf, inSession, readEntry, type Session } from './session.js';
import { duration, table } from './table.js';

/** Number of keys that a server scans before it serves other clients. */
const SCANNED_AT_ONCE = 500;

/** The locks on a master, by resource. */
type Found = ReadonlyMap<string, HeldReply>;

/**
 * Lists the locks on all masters. Resolves with the exit status: 1 if a master could not be asked.
 *
 * @param pattern pattern of resource names, in the syntax of SCAN
 */
export async function list(context: Context, pattern: string): Promise<number> {
  const { terminal, json, settings } = context;
  const { locks, unasked } = await inSession(context, (session) => listIn(session, settings, pattern));
  if (json) terminal.print(JSON.stringify({ locks: locks.map(brief), unasked }, null, 2));
  else {
    const head = ['resource', 'state', 'remaining', 'masters', 'holder', 'waiting'];
    if (locks.length > 0) terminal.print(table(head, locks.map(rowOf)));
    const where =
      locks.length > 0 ? '' : ` with the prefix ${showNames([settings.keyPrefix])} (--prefix names another)`;
    terminal.print(terminal.paint('bold', `${locks.length} ${locks.length === 1 ? 'lock' : 'locks'}${where}`));
  }
  for (const { master, answer } of unasked) {
    const reason = answer && 'reason' in answer ? answer.reason : 'no answer';
    terminal.complain(`${master} was not asked: ${reason}`);
  }
  return unasked.length > 0 ? 1 : 0;
}

interface Listing {
  readonly locks: readonly LockInspection[];
  readonly unasked: readonly MasterReport[];
}

async function listIn({ members, absent }: Session, settings: Settings, pattern: string): Promise<Listing> {
  const scans = await Promise.all(
    members.map(async ({ contact }) => ({ master: contact.name, found: await scan(contact, settings, pattern) })),
  );
  const failed = scans.flatMap(({ master, found }) => ('code' in found ? [{ master, answer: answerOf(found) }] : []));
  const unasked = [...absent, ...failed];
  const asked = scans.flatMap(({ master, found }) => ('code' in found ? [] : [{ master, found }]));
  const resources = [...new Set(asked.flatMap(({ found }) => [...found.keys()]))].sort();
  const locks = resources.map((resource) =>
    summarize(resource, [
      ...asked.map(({ master, found }) => ({ master, answer: answerIn(found, resource) })),
      ...unasked,
    ]),
  );
  return { locks, unasked };
}

function answerIn(found: Found, resource: string): MasterReply {
  return found.get(resource) ?? GRANTED;
}

/** SCAN may return a key twice, and a key that has expired meanwhile. */
async function scan(contact: Contact, { keyPrefix }: Settings, pattern: string): Promise<Found | Failure> {
  const keyspace = new Keyspace(keyPrefix);
  const start = keyspace.startOfKeys;
  const match = literally(start) + pattern;
  const found = new Map<string, HeldReply>();
  let cursor = '0';
  do {
    const page = await contact.call('SCAN', cursor, 'MATCH', match, 'COUNT', SCANNED_AT_ONCE, 'TYPE', 'string');
    if (isFailure(page)) return page;
    const [next, keys] = page.value as [string, string[]];
    const ours = keys.filter((key) => !key.includes(NUL, start.length));
    const resources = ours.map((key) => keyspace.resourceOf(key));
    const entries = await Promise.all(resources.map((resource) => readHeld(contact, keyspace, resource)));
    for (const [i, entry] of entries.entries()) {
      if (entry && 'code' in entry) return entry;
      if (entry) found.set(resources[i] ?? '', entry);
    }
    cursor = next;
  } while (cursor !== '0');
  return found;
}

async function readHeld(
  contact: Contact,
  keyspace: Keyspace,
  resource: string,
): Promise<HeldReply | Failure | undefined> {
  const [entry, waiting] = await Promise.all([
    readEntry(contact, keyspace.keyOf(resource)),
    contact.call('ZCARD', keyspace.queueOf(resource)),
  ]);
  if (!entry || 'code' in entry) return entry;
  const { value, remaining } = entry;
  const holder = holderFrom(value);
  const length = isFailure(waiting) ? 0 : Number(waiting.value);
  return { kind: 'held', remaining, waiting: length, ...(holder && { holder }) };
}

function rowOf({ resource, state, remaining, masters, holder, waiting }: LockInspection): string[] {
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  // An acquisition was given up, or a master was unreachable during the release.
  const words = state === 'free' ? 'leftover' : state;
  return [
    ...[showNames([resource]), words, state === 'held' ? duration(remaining) : '-', `${held} of ${masters.length}`],
    ...[holder ? heldBy(holder) : '-', String(waiting)],
  ];
}

function brief({ resource, state, remaining, masters, holder, waiting }: LockInspection): object {
  const heldOn = masters.filter(({ answer }) => answer?.kind === 'held').map(({ master }) => master);
  return { resource, state, remaining, holder, waiting, heldOn };
}
