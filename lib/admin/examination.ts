import { Keyspace } from '../settings/keyspace.js';
import { SystemRandom } from '../runtime/system.js';
import type { Settings } from '../settings/settings.js';
import { faultOf, parseInfo, parseServerIdentity, type ServerIdentity } from '../redis/replies.js';
import { REPORT } from '../redis/scripts/lua.generated.js';
import { Contact, type ContactFailure, isFailure } from './contact.js';
import { type MissingPermission, missingPermissions } from './permissions.js';
import type { NamedClient } from '../redis/master-source.js';

// How far a server's clock is ahead of the local clock, in milliseconds.
interface ClockOffset {
  readonly min: number;
  readonly max: number;
}

// `time` was read at some moment between the two readings of the local clock.
interface ClockSample {
  readonly sent: number;
  readonly received: number;
  readonly time: number;
}

// Clocks are read in whole milliseconds.
const RESOLUTION = 1;

export function offsetOf(samples: readonly ClockSample[]): ClockOffset | undefined {
  if (samples.length === 0) return undefined;
  const min = Math.max(...samples.map(({ received, time }) => time - received)) - RESOLUTION;
  const max = Math.min(...samples.map(({ sent, time }) => time - sent)) + RESOLUTION;
  // The bounds cross if a clock was set meanwhile.
  return min <= max ? { min, max } : { min: max, max: min };
}

export interface Examination {
  // An address, without credentials.
  readonly master: string;
  // A cluster or a Sentinel group.
  readonly isGroup?: boolean;
  readonly unreachable: ContactFailure | undefined;
  readonly report: ServerIdentity | undefined;
  // Why it must not vote.
  readonly fault: string | undefined;
  readonly persistence: Persistence | undefined;
  readonly missing: readonly MissingPermission[];
  // For another reason than a missing permission.
  readonly refusal: ContactFailure | undefined;
  readonly clock: ClockOffset | undefined;
  // In milliseconds.
  readonly latency: { readonly fastest: number; readonly median: number } | undefined;
}

// Fields that the server does not report are `undefined`.
interface Persistence {
  readonly appendOnly: boolean;
  // `always`, `everysec` or `no`.
  readonly fsync: string | undefined;
  readonly snapshots: boolean | undefined;
  readonly failing: boolean;
}

const ROUND_TRIPS = 9;
// In milliseconds.
const TRIAL_LIFE = 1_000;

export function examine(endpoint: NamedClient, settings: Settings, timeout: number): Promise<Examination> {
  const contact = new Contact(endpoint, timeout);
  const { isGroup } = endpoint;
  return contact.use(
    async () => ({ ...(await examineServer(contact, settings)), isGroup }),
    (failure) => ({ ...nothingKnown(contact.name, failure), isGroup }),
  );
}

// Afterwards the connection can only listen.
async function examineServer(contact: Contact, settings: Settings): Promise<Examination> {
  // One step after the other, so that the round trips are not measured while the server executes other commands.
  const trips = await measure(contact);
  const { report, foreign } = await askReport(contact, new Keyspace(settings.keyPrefix).marker);
  // A node of a cluster cannot be a master alone.
  const fault = report && faultOf(contact.isCluster ? { ...report, mode: 'standalone' } : report);
  const persistence = await askPersistence(contact);
  const unused = new SystemRandom().token();
  // A server that must not vote may have good reasons to refuse writes.
  const refusal =
    fault === undefined
      ? (foreign ?? (await tryLock(contact, new Keyspace(settings.keyPrefix).trialOf(unused))))
      : undefined;
  // Last, because the connection can only listen after it.
  const missing = await missingPermissions(contact, settings, { unused });
  return { ...nothingKnown(contact.name), ...trips, report, fault, persistence, refusal, missing };
}

function nothingKnown(master: string, unreachable?: ContactFailure): Examination {
  const unknown = { report: undefined, fault: undefined, persistence: undefined, refusal: undefined };
  return { master, unreachable, ...unknown, missing: [], clock: undefined, latency: undefined };
}

async function measure(contact: Contact): Promise<Pick<Examination, 'clock' | 'latency'>> {
  const samples: ClockSample[] = [];
  const trips: number[] = [];
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [sent, began] = [Date.now(), performance.now()];
    const outcome = await contact.call('TIME');
    trips.push(performance.now() - began);
    if (isFailure(outcome)) continue;
    const [seconds, microseconds] = (outcome.value as unknown[]).map(Number);
    samples.push({ sent, received: Date.now(), time: (seconds ?? NaN) * 1_000 + (microseconds ?? NaN) / 1_000 });
  }
  trips.sort((a, b) => a - b);
  const [fastest = NaN, median = NaN] = [trips[0], trips[Math.floor(trips.length / 2)]];
  return { clock: offsetOf(samples), latency: { fastest, median } };
}

// Without `maxTtl`: this process holds no locks, and begins no wait.
// Protocol 8.3
async function askReport(
  contact: Contact,
  marker: string,
): Promise<{ readonly report: ServerIdentity | undefined; readonly foreign?: ContactFailure | undefined }> {
  const outcome = await contact.call('EVAL', REPORT, 0, marker, '');
  if (!isFailure(outcome)) return { report: parseServerIdentity(outcome.value) };
  const foreign = outcome.code === 'WRONGTYPE' ? outcome : undefined;
  return { report: await askInfo(contact), foreign };
}

// For a user without the permission for scripts, and for a node of a cluster that may refuse the marker's key.
async function askInfo(contact: Contact): Promise<ServerIdentity | undefined> {
  const info = await contact.call('INFO');
  return isFailure(info) ? undefined : parseInfo(String(info.value), Date.now());
}

async function askPersistence(contact: Contact): Promise<Persistence | undefined> {
  const info = await contact.call('INFO', 'persistence');
  if (isFailure(info)) return undefined;
  const text = String(info.value);
  const failing = /^(?:rdb_last_bgsave_status|aof_last_write_status|aof_last_bgrewrite_status):err/m.test(text);
  const snapshots = await configured(contact, 'save');
  return {
    appendOnly: /^aof_enabled:1/m.test(text),
    fsync: await configured(contact, 'appendfsync'),
    snapshots: snapshots === undefined ? undefined : snapshots !== '',
    failing,
  };
}

// Locks do not need the permission for this, so a server may not report it.
async function configured(contact: Contact, name: string): Promise<string | undefined> {
  const outcome = await contact.call('CONFIG', 'GET', name);
  const [, value] = isFailure(outcome) || !Array.isArray(outcome.value) ? [] : (outcome.value as unknown[]);
  return typeof value === 'string' ? value : undefined;
}

// By a write to an unused key: a server may refuse writes for many reasons.
async function tryLock(contact: Contact, name: string): Promise<ContactFailure | undefined> {
  const outcome = await contact.call('SET', name, 'doctor', 'PX', TRIAL_LIFE, 'NX');
  if (!isFailure(outcome)) await contact.call('DEL', name);
  return isFailure(outcome) && outcome.code !== 'NOPERM' && !/^unknown command/i.test(outcome.reason)
    ? outcome
    : undefined;
}
