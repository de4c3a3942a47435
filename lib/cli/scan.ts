import { type KeyNames, NUL } from '../core/keyspace.js';
import { holderFrom } from '../core/holder.js';
import type { HeldReply } from '../core/master.interface.js';
import type { Settings } from '../core/settings/settings.js';
import { type Failure, isFailure } from './contact.js';
import { literally, matcherOf } from './pattern.js';
import { lookAt, readEntry, type SessionMaster } from './session.js';
import { keyspaceOf, named, namesOf } from './target.js';

/** Number of keys that a server scans before it serves other clients. */
const SCANNED_AT_ONCE = 500;

/** The locks and permits on a master, by key. */
export type Found = ReadonlyMap<string, HeldReply>;

/**
 * Finds the keys of locks and permits on a master.
 *
 * @param pattern pattern of resource names, in the syntax of SCAN
 */
export async function scan(member: SessionMaster, settings: Settings, pattern: string): Promise<Found | Failure> {
  const keyspace = keyspaceOf(settings);
  const { startOfKeys, startOfSlots } = keyspace;
  const matches = matcherOf(pattern);
  const found = new Map<string, HeldReply>();
  const passes = [
    { match: literally(startOfKeys) + pattern, isOurs: (key: string) => !key.includes(NUL, startOfKeys.length) },
    // The slot of the permit precedes the name, and both may match any part of the pattern.
    {
      match: `${literally(startOfSlots)}*:${pattern}`,
      isOurs: (key: string) => matches(keyspace.permitOf(key)?.resource ?? NUL),
    },
  ];
  for (const pass of passes) {
    const failure = await scanOnce({ ...pass, member, settings, found });
    if (failure) return failure;
  }
  return found;
}

interface Pass {
  readonly member: SessionMaster;
  readonly settings: Settings;
  readonly match: string;
  readonly isOurs: (key: string) => boolean;
  readonly found: Map<string, HeldReply>;
}

/** SCAN may return a key twice, and a key that has expired meanwhile. */
async function scanOnce({ member, settings, match, isOurs, found }: Pass): Promise<Failure | undefined> {
  const keyspace = keyspaceOf(settings);
  let cursor = '0';
  do {
    const page = await member.contact.call('SCAN', cursor, 'MATCH', match, 'COUNT', SCANNED_AT_ONCE);
    if (isFailure(page)) return page;
    const [next, keys] = page.value as [string, string[]];
    const ours = keys.filter(isOurs);
    const replies = await Promise.all(
      ours.map((key) => readHeld(member, namesOf(named(key, keyspace), settings), settings)),
    );
    for (const [i, reply] of replies.entries()) {
      if (reply && 'code' in reply) return reply;
      if (reply) found.set(ours[i] ?? '', reply);
    }
    cursor = next;
  } while (cursor !== '0');
  return undefined;
}

async function readHeld(
  member: SessionMaster,
  names: KeyNames,
  { masterTimeout }: Settings,
): Promise<HeldReply | Failure | undefined> {
  const { contact } = member;
  const [key = '', queue = ''] = [names.keys[0], names.queues[0]];
  const [entry, waiting] = await Promise.all([readEntry(contact, key), contact.call('ZCARD', queue)]);
  if (!entry) return undefined;
  if ('code' in entry) {
    if (entry.code !== 'WRONGTYPE') return entry;
    // Shared holders, or the data of another program.
    const answer = await lookAt(member, names, masterTimeout);
    return answer?.kind === 'held' ? answer : undefined;
  }
  const { value, remaining } = entry;
  const holder = holderFrom(value);
  const length = isFailure(waiting) ? 0 : Number(waiting.value);
  return { kind: 'held', remaining, waiting: length, ...(holder && { holder }) };
}
