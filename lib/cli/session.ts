import { hostname, userInfo } from 'node:os';
import { readFileSync } from 'node:fs';
import { formatValue } from '../core/display.js';
import { parseDuration } from '../core/settings/duration.js';
import { resolveSettings, type Settings } from '../core/settings/settings.js';
import { type ClusterSettings, clusterSettings, isClusterSource } from '../redis/cluster/cluster-source.js';
import { type NamedClient, redisClient, redisMasters, refuseTwins, type ServerMaster } from '../redis/master-source.js';
import { addressesIn, isListOfAddresses, redactAddress } from '../redis/urls.js';
import { defaultInstance, SystemRandom } from '../runtime/system.js';
import type { Terminal } from './terminal.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { SystemClock } from '../runtime/system-clock.js';
import { type MasterReport, QuorumUnavailableError, RedlockConfigError } from '../core/errors.js';
import type { MasterReply } from '../core/master.interface.js';
import { inTime } from '../core/inspector.js';
import { Redlock } from '../core/redlock.js';
import { languageOf } from '../redis/connection-problem.js';

// For URLs that should not be on a command line, where every user of the machine can read them.
export const MASTERS_VARIABLE = 'REDLOCK_MASTERS';

interface CommonOptions {
  readonly master?: readonly string[];
  readonly mastersFile?: string;
  readonly prefix?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

export interface CommandContext {
  // With credentials: never show them.
  readonly sources: readonly string[];
  readonly endpoints: readonly (ClusterSettings | NamedClient)[];
  readonly settings: Settings;
  // For one answer, in milliseconds.
  readonly timeout: number;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export class UsageError extends Error {}

export function contextOf(options: CommonOptions, terminal: Terminal): CommandContext {
  const timeout = parseDuration('--timeout', options.timeout, 1, 60_000);
  const sources = sourcesOf(options);
  const endpoints = sources.map((source, index) => {
    const option = `masters[${index}]`;
    return isClusterSource(source) ? clusterSettings(option, source) : redisClient(option, source);
  });
  refuseTwins('masters', endpoints);
  // Without the restart guard, which would write a marker on each master.
  const settings = resolveSettings({
    ...{ ttl: Math.max(10_000, 4 * timeout), maxTtl: Math.max(30_000, 4 * timeout), masterTimeout: timeout },
    ...{
      restartGuard: false,
      instance: `cli:${defaultInstance()}`,
      ...(options.prefix !== undefined && { keyPrefix: options.prefix }),
    },
  });
  return { sources, endpoints, settings, timeout, json: options.json ?? false, terminal };
}

function sourcesOf({ master = [], mastersFile }: CommonOptions): readonly string[] {
  const named = [...master, ...(mastersFile === undefined ? [] : linesOf(mastersFile))];
  const sources = named.length > 0 ? named : addressesIn(process.env[MASTERS_VARIABLE] ?? '');
  const list = sources.find(isListOfAddresses);
  if (list !== undefined) {
    throw new UsageError(
      `${formatValue(redactAddress(list))} is several addresses: give each as --master redis://host:6379`,
    );
  }
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

// For the audit.
export function operator(): string {
  const { SUDO_USER } = process.env;
  const name = userName();
  const who = SUDO_USER !== undefined && SUDO_USER !== name ? `${SUDO_USER} as ${name}` : name;
  return `${who}@${hostname()}`;
}

// A container may run under a user id that has no name.
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

const CLOCK = new SystemClock();

export interface Session {
  readonly redlock: Redlock;
  // Masters that an application would refuse do not count here, either.
  readonly masters: readonly ServerMaster[];
  readonly absent: readonly MasterReport[];
  // Bounds the time for one answer.
  readonly limit: <T>(answer: Promise<T>) => Promise<T | MasterReply>;
}

export async function inSession<T>(
  { sources, settings, timeout }: CommandContext,
  action: (session: Session) => Promise<T>,
  { readsMarkers = false } = {},
): Promise<T> {
  const dependencies = { clock: CLOCK, random: new SystemRandom(), observer: {}, encoder: new RequestEncoder() };
  const masters = redisMasters('masters', sources, { ...dependencies, settings, languageOf, readsMarkers });
  const redlock = new Redlock(masters, settings, dependencies);
  try {
    // Each answer reports what is wrong.
    await redlock.connect(timeout).catch((error: unknown) => {
      if (!(error instanceof QuorumUnavailableError || error instanceof RedlockConfigError)) throw error;
    });
    const { masters: states } = redlock.status();
    return await action({
      redlock,
      masters: masters.filter((_, index) => states[index]?.state === 'voting'),
      absent: states.flatMap(({ master, state, reason = 'not connected' }): MasterReport[] => {
        const isPermanent = state === 'refused';
        const answer = { kind: 'unreachable', reason, sent: false, ...(isPermanent && { isPermanent }) } as const;
        return state === 'voting' ? [] : [{ master, answer }];
      }),
      limit: (answer) => inTime(answer, { clock: CLOCK, timeout }),
    });
  } finally {
    await redlock.close();
  }
}
