import { readFileSync } from 'node:fs';
import { parseDuration } from '../core/settings/duration.js';
import { resolveSettings, type Settings } from '../core/settings/settings.js';
import { clusterSettings, isClusterSource } from '../redis/cluster/cluster-source.js';
import { refuseTwins, redisClient } from '../redis/master-source.js';
import { addressesIn } from '../redis/url-parts.js';
import { defaultInstance } from '../runtime/instance.js';
import type { Terminal } from './terminal.js';

/**
 * The environment variable for URLs that should not be on a command line, where every user of the machine can read
 * them.
 */
export const MASTERS_VARIABLE = 'REDLOCK_MASTERS';

/** The options that all commands have in common, as typed. */
export interface CommonOptions {
  readonly master?: readonly string[];
  readonly mastersFile?: string;
  readonly prefix?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

/** The checked input of all commands. */
export interface Context {
  /** URLs with credentials: never show them. */
  readonly sources: readonly string[];
  readonly settings: Settings;
  /** Time limit for one answer, in milliseconds. */
  readonly timeout: number;
  readonly json: boolean;
  readonly terminal: Terminal;
}

/** The command line is invalid. */
export class UsageError extends Error {}

/**
 * @throws {UsageError} if no master is named
 * @throws {RedlockConfigError} if a master or an option is invalid
 */
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
