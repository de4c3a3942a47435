import { Keyspace } from '../core/keyspace.js';
import { SystemRandom } from '../runtime/system-random.js';
import type { Settings } from '../core/settings/settings.js';
import { faultOf, parseServerIdentity, parseInfo, type ServerIdentity } from '../redis/identity.js';
import { REPORT } from '../redis/scripts/report.lua.js';
import type { ClusterExamination, ShardFacts } from './cluster-examination.js';
import { type ClockOffset, type ClockSample, offsetOf } from './clock-offset.js';
import { type Contact, type Failure, isFailure } from './contact.js';
import { type MissingPermission, missingPermissions } from './permissions.js';

/** The findings of the doctor about one master. */
export interface Examination {
  /** The primaries of a cluster, which are examined in its place; absent for a server. */
  readonly cluster?: ClusterExamination;
  /** Present for a primary of a cluster. */
  readonly shard?: ShardFacts;
  /** Address, without credentials. */
  readonly master: string;
  /** Why the master could not be examined; `undefined` if it was. */
  readonly unreachable: Failure | undefined;
  readonly report: ServerIdentity | undefined;
  /** Whether the applications declare that it is durable. */
  readonly isDurable?: boolean;
  /** Why it must not vote; `undefined` if it may. */
  readonly fault: string | undefined;
  readonly persistence: Persistence | undefined;
  readonly missing: readonly MissingPermission[];
  /** Why it refuses to store a lock, for a reason other than a missing permission. */
  readonly refusal: Failure | undefined;
  readonly clock: ClockOffset | undefined;
  /** Milliseconds of the fastest and of the median round trip. */
  readonly latency: { readonly fastest: number; readonly median: number } | undefined;
}

/** How a server persists its data. Fields that it does not report are `undefined`. */
export interface Persistence {
  readonly appendOnly: boolean;
  /** Whether its append-only file is being written anew. */
  readonly isRewriting?: boolean;
  /** `always`, `everysec` or `no`. */
  readonly fsync: string | undefined;
  readonly snapshots: boolean | undefined;
  /** Whether the last snapshot or write to its log failed. */
  readonly failing: boolean;
}

const ROUND_TRIPS = 9;
/** Expiry of the key that is written as a trial, in milliseconds. */
const TRIAL_LIFE = 1_000;

/** Examines one master over a new connection. */
export async function examine(contact: Contact, settings: Settings): Promise<Examination> {
  try {
    const unreachable = await contact.open();
    return unreachable ? nothingKnown(contact.name, unreachable) : await examineServer(contact, settings);
  } finally {
    contact.close();
  }
}

/** What differs on a node of a cluster. */
export interface NodeRules {
  /** The name as it is stored there. */
  readonly stored: (name: string) => string;
  readonly faultOf: (report: ServerIdentity) => string | undefined;
  /** The subcommands of CLUSTER that locks need. */
  readonly subcommands: readonly string[];
  /** Looks at the data of a node that has reported its identity. */
  readonly reported: (report: ServerIdentity) => Promise<void>;
}

/** Examines a server, or a node of a cluster, over an open connection, which only listens afterwards. */
export async function examineServer(contact: Contact, settings: Settings, rules?: NodeRules): Promise<Examination> {
  const { stored = (name: string) => name } = rules ?? {};
  // One step after the other, so that the round trips are not measured while the server executes other commands.
  const trips = await measure(contact);
  const report = await askReport(contact, rules ? [] : [new Keyspace(settings.keyPrefix).marker]);
  const fault = report && (rules ?? { faultOf }).faultOf(report);
  if (report && fault === undefined) await rules?.reported(report);
  const persistence = await askPersistence(contact);
  const unused = new SystemRandom().token();
  // A server that must not vote may have good reasons to refuse writes.
  const refusal =
    fault === undefined ? await tryLock(contact, stored(new Keyspace(settings.keyPrefix).trialOf(unused))) : undefined;
  // Last, because the connection can only listen after it.
  const missing = await missingPermissions(contact, settings, { unused, stored, subcommands: rules?.subcommands });
  return { ...nothingKnown(contact.name), ...trips, report, fault, persistence, refusal, missing };
}

export function nothingKnown(master: string, unreachable?: Failure): Examination {
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

async function askReport(contact: Contact, marker: readonly string[]): Promise<ServerIdentity | undefined> {
  const outcome = await contact.call('EVAL', REPORT, marker.length, ...marker);
  if (!isFailure(outcome)) return parseServerIdentity(outcome.value);
  // A user without the permission for scripts may still have the one for INFO.
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
    isRewriting: /^aof_rewrite_(?:in_progress|scheduled):1/m.test(text),
    fsync: await configured(contact, 'appendfsync'),
    snapshots: snapshots === undefined ? undefined : snapshots !== '',
    failing,
  };
}

/** A setting of the server; `undefined` if the server does not report it. Locks do not need the permission for this. */
export async function configured(contact: Contact, name: string): Promise<string | undefined> {
  const outcome = await contact.call('CONFIG', 'GET', name);
  const [, value] = isFailure(outcome) || !Array.isArray(outcome.value) ? [] : (outcome.value as unknown[]);
  return typeof value === 'string' ? value : undefined;
}

/** Writes an unused key and deletes it: a server may refuse writes for many reasons. */
async function tryLock(contact: Contact, name: string): Promise<Failure | undefined> {
  const outcome = await contact.call('SET', name, 'doctor', 'PX', TRIAL_LIFE, 'NX');
  if (!isFailure(outcome)) await contact.call('DEL', name);
  return isFailure(outcome) && outcome.code !== 'NOPERM' && !/^unknown command/i.test(outcome.reason)
    ? outcome
    : undefined;
}
