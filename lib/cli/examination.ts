import { SystemRandom } from '../core/random.js';
import { ownName, type Settings } from '../core/settings.js';
import { faultOf, REPORT, reportOf, type ServerReport } from '../redis/identity.js';
import { type ClockOffset, type ClockSample, offsetOf } from './clock-offset.js';
import { type Contact, type Failure, isFailure } from './contact.js';
import { type MissingPermission, missingPermissions } from './permissions.js';

/** What the doctor has found out about one master. */
export interface Examination {
  /** Address, without credentials. */
  readonly master: string;
  /** Why nothing else is known, if nothing is. */
  readonly unreachable: Failure | undefined;
  readonly report: ServerReport | undefined;
  /** Why it must not vote, if it must not. */
  readonly fault: string | undefined;
  readonly persistence: Persistence | undefined;
  readonly missing: readonly MissingPermission[];
  /** Why it does not take a lock, for another reason than a missing permission. */
  readonly refusal: Failure | undefined;
  readonly clock: ClockOffset | undefined;
  /** Milliseconds of the fastest and of the median round trip. */
  readonly latency: { readonly fastest: number; readonly median: number } | undefined;
}

/** How a server keeps its data. What it does not tell is `undefined`. */
export interface Persistence {
  readonly appendOnly: boolean;
  /** `always`, `everysec` or `no`. */
  readonly fsync: string | undefined;
  readonly snapshots: boolean | undefined;
  /** Whether the last snapshot or write to its log failed. */
  readonly failing: boolean;
}

const ROUND_TRIPS = 9;
/** A name that is written for a moment, in milliseconds. */
const TRIAL_LIFE = 1_000;

/** Looks at one master over a new connection. */
export async function examine(contact: Contact, settings: Settings): Promise<Examination> {
  try {
    const unreachable = await contact.open();
    return unreachable ? nothingKnown(contact.name, unreachable) : await examineOpen(contact, settings);
  } finally {
    contact.close();
  }
}

async function examineOpen(contact: Contact, settings: Settings): Promise<Examination> {
  // One after the other, so that the round trips are not measured while the server does something else.
  const trips = await measure(contact);
  const report = await askReport(contact, settings);
  const fault = report && faultOf(report);
  const persistence = await askPersistence(contact);
  const unused = new SystemRandom().token();
  // A server that must not vote may have good reasons to refuse.
  const refusal = fault === undefined ? await tryLock(contact, ownName(settings, `doctor:${unused}`)) : undefined;
  // Last, since the connection can only listen then.
  const missing = await missingPermissions(contact, settings, unused);
  return { ...nothingKnown(contact.name), ...trips, report, fault, persistence, refusal, missing };
}

function nothingKnown(master: string, unreachable?: Failure): Examination {
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

async function askReport(contact: Contact, settings: Settings): Promise<ServerReport | undefined> {
  const outcome = await contact.call('EVAL', REPORT, 1, ownName(settings, 'incarnation'));
  if (!isFailure(outcome)) return reportOf(outcome.value);
  // Who may not run scripts may still be allowed to ask.
  const info = await contact.call('INFO');
  return isFailure(info) ? undefined : reportOf([info.value, info.value, info.value, info.value, Date.now()]);
}

async function askPersistence(contact: Contact): Promise<Persistence | undefined> {
  const info = await contact.call('INFO', 'persistence');
  if (isFailure(info)) return undefined;
  const text = String(info.value);
  const failing = /^(?:rdb_last_bgsave_status|aof_last_write_status):err/m.test(text);
  const snapshots = await configured(contact, 'save');
  return {
    appendOnly: /^aof_enabled:1/m.test(text),
    fsync: await configured(contact, 'appendfsync'),
    snapshots: snapshots === undefined ? undefined : snapshots !== '',
    failing,
  };
}

/** A setting of the server, if it tells. No lock needs the permission for this. */
export async function configured(contact: Contact, name: string): Promise<string | undefined> {
  const outcome = await contact.call('CONFIG', 'GET', name);
  const [, value] = isFailure(outcome) || !Array.isArray(outcome.value) ? [] : (outcome.value as unknown[]);
  return typeof value === 'string' ? value : undefined;
}

/** Writes a name of our own that nobody uses, and deletes it: a server may refuse writes for many reasons. */
async function tryLock(contact: Contact, name: string): Promise<Failure | undefined> {
  const outcome = await contact.call('SET', name, 'doctor', 'PX', TRIAL_LIFE, 'NX');
  if (!isFailure(outcome)) await contact.call('DEL', name);
  return isFailure(outcome) && outcome.code !== 'NOPERM' && !/^unknown command/i.test(outcome.reason)
    ? outcome
    : undefined;
}
