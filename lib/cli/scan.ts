import { type KeyNames, NUL } from '../core/keyspace.js';
import { holderFrom } from '../core/holder.js';
import type { HeldReply } from '../core/master.interface.js';
import type { Settings } from '../core/settings/settings.js';
import { type Failure, isFailure } from './contact.js';
import { literally, matcherOf } from './pattern.js';
import { lookAt, readEntry, type SessionMaster } from './session.js';
import { keyspaceOf, targetNamed, namesOf } from './target.js';

/** The locks and permits on a master. */
export interface Found {
  /** By key. */
  readonly held: ReadonlyMap<string, HeldReply>;
  /** Why there may be more; `undefined` if all were found. */
  readonly failure: Failure | undefined;
}

/**
 * Finds the keys of locks and permits on a master.
 *
 * @param pattern pattern of resource names, in the syntax of SCAN
 */
export async function scan(member: SessionMaster, settings: Settings, pattern: string): Promise<Found> {
  const keyspace = keyspaceOf(settings);
  const { startOfKeys, startOfSlots } = keyspace;
  const matches = matcherOf(pattern);
  const held = new Map<string, HeldReply>();
  const passes = [
    { match: literally(startOfKeys) + pattern, isOurs: (key: string) => !key.includes(NUL, startOfKeys.length) },
    // The slot of the permit precedes the name, and both may match any part of the pattern.
    {
      match: `${literally(startOfSlots)}*:${pattern}`,
      isOurs: (key: string) => matches(keyspace.permitOf(key)?.resource ?? NUL),
    },
  ];
  let failure: Failure | undefined;
  for (const pass of passes) failure ??= await scanOnce({ ...pass, member, settings, held });
  return { held, failure };
}

interface Pass {
  readonly member: SessionMaster;
  readonly settings: Settings;
  readonly match: string;
  readonly isOurs: (key: string) => boolean;
  readonly held: Map<string, HeldReply>;
}

function scanOnce({ member, settings, match, isOurs, held }: Pass): Promise<Failure | undefined> {
  const keyspace = keyspaceOf(settings);
  return member.contact.scan(match, async (keys) => {
    const ours = keys.filter(isOurs);
    const replies = await Promise.all(
      ours.map((key) => readHeld(member, namesOf(targetNamed(key, keyspace), settings), settings)),
    );
    for (const [i, reply] of replies.entries()) {
      if (reply && 'code' in reply) return reply;
      if (reply) held.set(ours[i] ?? '', reply);
    }
    return undefined;
  });
}

async function readHeld(
  member: SessionMaster,
  names: KeyNames,
  { masterTimeout }: Settings,
): Promise<HeldReply | Failure | undefined> {
  const { contact } = member;
  const [key = '', queue = ''] = [names.keys[0], names.queues[0]];
  const place = contact.at(key);
  const [entry, waiting] = await Promise.all([readEntry(contact, key), place.call('ZCARD', place.stored(queue))]);
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
