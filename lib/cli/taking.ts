import { SystemClock } from '../core/clock.js';
import type { MasterReport } from '../core/errors.js';
import { askAll } from '../core/quorum.js';
import { startOfKeys } from '../core/resources.js';
import { ownName, type Settings } from '../core/settings.js';
import { isFailure } from './contact.js';
import { answerOf, type Entry, type Member, readEntry, type Session } from './session.js';

/** Takes the place of the holder's token, so that its extension is refused. */
const REVOKED = 'released by force';
/** Begins what is kept for a moment for a process that is next. */
const RESERVED = 'reserved for ';

/**
 * KEYS: the key. ARGV: the token that it must have, what takes its place. What is left of its time is kept, and told: the
 * holder may have extended it while the operator was asked.
 */
const REVOKE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return left`;

/** A resource on one master. */
export interface Held {
  readonly member: Member;
  readonly entry: Entry;
}

/** A resource on all masters. */
export interface Found {
  readonly held: readonly Held[];
  /** What was revoked before, and has not expired yet. */
  readonly revoked: readonly Held[];
  /** Masters that could not tell, and why. */
  readonly unasked: readonly MasterReport[];
}

/** What came of taking a lock from its holder on one master. */
export interface Taking extends MasterReport {
  /** Milliseconds for which the key still lives; `undefined` if it may still be the holder's. */
  readonly left: number | undefined;
}

/** Who holds a resource on which master. */
export async function find({ members, absent }: Session, resource: string, { keyPrefix }: Settings): Promise<Found> {
  const key = startOfKeys(keyPrefix) + resource;
  const entries = await Promise.all(members.map(({ contact }) => readEntry(contact, key)));
  const kept: Held[] = [];
  const unasked = [...absent];
  members.forEach((member, i) => {
    const entry = entries[i];
    if (entry && 'code' in entry) unasked.push({ master: member.contact.name, answer: answerOf(entry) });
    else if (entry && !entry.value.startsWith(RESERVED)) kept.push({ member, entry });
  });
  const isRevoked = ({ entry }: Held): boolean => entry.value === REVOKED;
  return { held: kept.filter((one) => !isRevoked(one)), revoked: kept.filter(isRevoked), unasked };
}

/** Keeps the holder that was found from extending the lock. Whoever has come since is left alone. */
export async function revoke({ member, entry }: Held, resource: string, { keyPrefix }: Settings): Promise<Taking> {
  const { contact } = member;
  const outcome = await contact.call('EVAL', REVOKE, 1, startOfKeys(keyPrefix) + resource, entry.value, REVOKED);
  if (isFailure(outcome)) return { master: contact.name, answer: answerOf(outcome), left: undefined };
  return { master: contact.name, answer: undefined, left: Number(outcome.value) };
}

/** Releases the lock like the holder that was found would, so that whoever waits is woken. */
export async function free({ member, entry }: Held, resource: string, settings: Settings): Promise<Taking> {
  const { master } = member;
  const names = {
    keys: [startOfKeys(settings.keyPrefix) + resource],
    queues: [ownName(settings, `queue:${resource}`)],
  };
  const request = { op: 'release', ...names, token: entry.value, keepFor: 0, ttl: settings.maxTtl } as const;
  const [report] = await askAll([master], request, new SystemClock(), settings.masterTimeout);
  const answer = report?.answer;
  return { master: master.name, answer, left: answer?.kind === 'granted' ? 0 : undefined };
}
