import { Keyspace, NUL } from '../core/keyspace.js';
import type { MasterReport } from '../core/errors.js';
import { type LockInspection, summarize } from '../core/inspection.js';
import { type MasterReply, GRANTED } from '../core/master.interface.js';
import type { Settings } from '../core/settings/settings.js';
import { showNames } from '../core/display.js';
import { type Contact, type Failure, isFailure } from './contact.js';
import type { Context } from './context.js';
import { literally } from './pattern.js';
import { answerOf, inSession, type Session } from './session.js';
import { duration, table } from './table.js';

/** Number of keys that a server scans before it serves other clients. */
const SCANNED_AT_ONCE = 500;

/** The locks on a master: remaining milliseconds by resource, `undefined` for a key that does not expire. */
type Found = ReadonlyMap<string, number | undefined>;

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
    if (locks.length > 0) terminal.print(table(['resource', 'state', 'remaining', 'masters'], locks.map(rowOf)));
    terminal.print(terminal.paint('bold', `${locks.length} ${locks.length === 1 ? 'lock' : 'locks'}`));
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
  return found.has(resource) ? { kind: 'held', remaining: found.get(resource) } : GRANTED;
}

/** SCAN may return a key twice, and a key that has expired meanwhile. */
async function scan(contact: Contact, { keyPrefix }: Settings, pattern: string): Promise<Found | Failure> {
  const start = new Keyspace(keyPrefix).startOfKeys;
  const match = literally(start) + pattern;
  const found = new Map<string, number | undefined>();
  let cursor = '0';
  do {
    const page = await contact.call('SCAN', cursor, 'MATCH', match, 'COUNT', SCANNED_AT_ONCE, 'TYPE', 'string');
    if (isFailure(page)) return page;
    const [next, keys] = page.value as [string, string[]];
    const ours = keys.filter((key) => !key.includes(NUL, start.length));
    const times = await Promise.all(ours.map((key) => contact.call('PTTL', key)));
    for (const [i, time] of times.entries()) {
      if (isFailure(time)) return time;
      const left = Number(time.value);
      if (left !== -2) found.set((ours[i] ?? '').slice(start.length), left < 0 ? undefined : left);
    }
    cursor = next;
  } while (cursor !== '0');
  return found;
}

function rowOf({ resource, state, remaining, masters }: LockInspection): string[] {
  const held = masters.filter(({ answer }) => answer?.kind === 'held').length;
  // An acquisition was given up, or a master was unreachable during the release.
  const words = state === 'free' ? 'leftover' : state;
  return [showNames([resource]), words, state === 'held' ? duration(remaining) : '-', `${held} of ${masters.length}`];
}

function brief({ resource, state, remaining, masters }: LockInspection): object {
  const heldOn = masters.filter(({ answer }) => answer?.kind === 'held').map(({ master }) => master);
  return { resource, state, remaining, heldOn };
}
