import { readFileSync } from 'node:fs';
import { parseDuration } from '../core/settings/duration.js';
import { resolveSettings, type Settings } from '../core/settings/settings.js';
import { clusterSettings, isClusterSource } from '../redis/cluster/cluster-source.js';
import { redisClient, redisMasters, refuseTwins, type ServerMaster } from '../redis/master-source.js';
import { addressesIn } from '../redis/urls.js';
import { defaultInstance } from '../runtime/instance.js';
import type { Terminal } from './terminal.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { SystemClock } from '../runtime/system-clock.js';
import { type MasterReport, QuorumUnavailableError, RedlockConfigError } from '../core/errors.js';
import { askAll } from '../core/acquire/quorum-call.js';
import type { KeyNames } from '../core/keyspace.js';
import type { MasterReply } from '../core/master.interface.js';
import { SystemRandom } from '../runtime/system-random.js';
import { Redlock } from '../core/redlock.js';
import { languageOf } from '../redis/connection-problem.js';
import { ClusterContact, Contact, type Failure, isFailure, type LockContact, ServerContact } from './contact.js';

// For URLs that should not be on a command line, where every user of the machine can read them.
export const MASTERS_VARIABLE = 'REDLOCK_MASTERS';

export interface CommonOptions {
  readonly master?: readonly string[];
  readonly mastersFile?: string;
  readonly prefix?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

export interface Context {
  // With credentials: never show them.
  readonly sources: readonly string[];
  readonly settings: Settings;
  // For one answer, in milliseconds.
  readonly timeout: number;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export class UsageError extends Error {}

export function contextOf(options: CommonOptions, terminal: Terminal): Context {
  const timeout = parseDuration('--timeout', options.timeout, 1, 60_000);
  const sources = sourcesOf(options);
  const masters = sources.map((source, index) => {
    const option = `masters[${index}]`;
    return isClusterSource(source) ? clusterSettings(option, source) : redisClient(option, source);
  });
  refuseTwins('masters', masters);
  // Without the restart guard, which would write a marker on each master.
  const settings = resolveSettings({
    ...{ ttl: Math.max(10_000, 4 * timeout), maxTtl: Math.max(30_000, 4 * timeout), masterTimeout: timeout },
    ...{
      restartGuard: false,
      instance: `cli:${defaultInstance()}`,
      ...(options.prefix !== undefined && { keyPrefix: options.prefix }),
    },
  });
  return { sources, settings, timeout, json: options.json ?? false, terminal };
}

function sourcesOf({ master = [], mastersFile }: CommonOptions): readonly string[] {
  const named = [...master, ...(mastersFile === undefined ? [] : linesOf(mastersFile))];
  const sources = named.length > 0 ? named : addressesIn(process.env[MASTERS_VARIABLE] ?? '');
  if (sources.length > 0) return sources;
  throw new UsageError(`no masters: give --master <url> for each, --masters-file <path>, or ${MASTERS_VARIABLE}`);
}

function linesOf(path: string): string[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new UsageError(`the file of --masters-file cannot be read: ${code}`);
  }
}

export interface SessionMaster {
  readonly master: ServerMaster;
  readonly contact: LockContact;
}

// Masters that an application would refuse do not count here, either.
export class Session {
  private constructor(
    readonly redlock: Redlock,
    readonly members: readonly SessionMaster[],
    readonly absent: readonly MasterReport[],
  ) {}

  static async open({ sources, settings, timeout }: Context): Promise<Session> {
    const dependencies = {
      clock: new SystemClock(),
      random: new SystemRandom(),
      observer: {},
      encoder: new RequestEncoder(),
    };
    const masters = redisMasters('masters', sources, { ...dependencies, settings, languageOf });
    const redlock = new Redlock(masters, settings, dependencies);
    // Each answer reports what is wrong.
    await redlock.connect(timeout).catch((error: unknown) => {
      if (!(error instanceof QuorumUnavailableError || error instanceof RedlockConfigError)) throw error;
    });
    const { masters: states } = redlock.status();
    const contacts = sources.map((source, index) => {
      const option = `masters[${index}]`;
      return isClusterSource(source)
        ? new ClusterContact(clusterSettings(option, source), settings.keyPrefix, timeout)
        : new ServerContact(new Contact(redisClient(option, source), timeout), settings.keyPrefix);
    });
    const reports = await Promise.all(
      contacts.map(async (contact, index): Promise<MasterReport> => {
        const { state = 'down', reason = 'not connected' } = states[index] ?? {};
        const isPermanent = state === 'refused';
        const failure = state === 'voting' ? await contact.open() : { code: 'UNREACHABLE', reason, isPermanent };
        return { master: contact.name, answer: failure && answerOf(failure) };
      }),
    );
    const members = masters.flatMap((master, index) => {
      const contact = contacts[index];
      return contact && !reports[index]?.answer ? [{ master, contact }] : [];
    });
    return new Session(
      redlock,
      members,
      reports.filter(({ answer }) => answer),
    );
  }

  async close(): Promise<void> {
    for (const { contact } of this.members) contact.close();
    await this.redlock.close();
  }
}

export async function inSession<T>(context: Context, action: (session: Session) => Promise<T>): Promise<T> {
  const session = await Session.open(context);
  try {
    return await action(session);
  } finally {
    await session.close();
  }
}

export function answerOf({ code, reason, isPermanent }: Failure): MasterReply {
  return code === 'UNREACHABLE'
    ? { kind: 'unreachable', reason, sent: false, ...(isPermanent && { isPermanent }) }
    : { kind: 'refused', code, reason };
}

export async function lookAt(
  { master }: SessionMaster,
  { keys, queues }: KeyNames,
  timeout: number,
): Promise<MasterReply | undefined> {
  const request = { op: 'inspect', keys, queues } as const;
  const [report] = await askAll({ masters: [master], request, clock: new SystemClock(), timeout });
  return report?.answer;
}

export interface Entry {
  readonly value: string;
  // `undefined` for a key that does not expire.
  readonly remaining: number | undefined;
}

export async function readEntry(contact: LockContact, key: string): Promise<Entry | Failure | undefined> {
  const place = contact.at(key);
  const stored = place.stored(key);
  const [value, left] = await Promise.all([place.call('GET', stored), place.call('PTTL', stored)]);
  if (isFailure(value)) return value;
  if (isFailure(left)) return left;
  if (typeof value.value !== 'string') return undefined;
  const remaining = Number(left.value);
  return { value: value.value, remaining: remaining < 0 ? undefined : remaining };
}
