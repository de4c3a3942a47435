import { RESERVED } from '../core/forced-release.js';
import { REVOKED } from '../core/holder.js';
import { SystemClock } from '../runtime/system-clock.js';
import type { MasterReport } from '../core/errors.js';
import { askAll } from '../core/acquire/quorum-call.js';
import type { Settings } from '../core/settings/settings.js';
import { REVOKE } from '../redis/scripts/revoke.lua.js';
import { isFailure } from './contact.js';
import { answerOf, type Entry, type SessionMaster, readEntry, type Session } from './session.js';
import type { Target } from '../core/target.js';
import { keyOf, namesOf } from './target.js';

/** A resource on one master. */
export interface HeldKey {
  readonly member: SessionMaster;
  readonly entry: Entry;
}

/** A resource on all masters. */
export interface Found {
  readonly held: readonly HeldKey[];
  /** Keys that were revoked earlier and have not expired yet. */
  readonly revoked: readonly HeldKey[];
  /** Masters that could not be asked, and why. */
  readonly unasked: readonly MasterReport[];
}

/** The result of taking a lock away from its holder on one master. */
export interface Taking extends MasterReport {
  /** Milliseconds until the key expires; `undefined` if the holder may still have it. */
  readonly left: number | undefined;
}

/** Finds the masters on which a lock or a permit is held. */
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

/** Keeps the holder that was found from extending the lock. The lock of a later holder is left alone. */
export async function revoke({ member, entry }: HeldKey, target: Target, settings: Settings): Promise<Taking> {
  const { contact } = member;
  const key = keyOf(target, settings);
  const place = contact.at(key);
  const outcome = await place.call('EVAL', REVOKE, 1, place.stored(key), entry.value, REVOKED);
  if (isFailure(outcome)) return { master: contact.name, answer: answerOf(outcome), left: undefined };
  return { master: contact.name, answer: undefined, left: Number(outcome.value) };
}

/** Releases the lock as the holder that was found would, so that the next waiter is notified. */
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
