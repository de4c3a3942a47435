import { hostname, userInfo } from 'node:os';
import { readFileSync } from 'node:fs';
import * as admin from '../admin/admin.js';
import { schema } from '../internal.js';
import type { Terminal } from './terminal.js';

// For URLs that should not be on a command line, where every user of the machine can read them.
export const MASTERS_VARIABLE = 'REDLOCK_MASTERS';

interface CommonOptions {
  readonly master?: readonly string[];
  readonly mastersFile?: string;
  readonly prefix?: string;
  readonly timeout: string;
  readonly json?: boolean;
}

export interface CommandContext extends admin.AdminContext {
  readonly json: boolean;
  readonly terminal: Terminal;
}

export class UsageError extends Error {}

const TIMEOUT = schema.duration(1, 'from 1 ms to 60s', 60_000);

export function contextOf(options: CommonOptions, terminal: Terminal): CommandContext {
  const timeout = TIMEOUT('--timeout', options.timeout);
  const context = admin.adminContext({ sources: sourcesOf(options), keyPrefix: options.prefix, timeout });
  return { ...context, json: options.json ?? false, terminal };
}

function sourcesOf({ master = [], mastersFile }: CommonOptions): readonly string[] {
  const named = [...master, ...(mastersFile === undefined ? [] : linesOf(mastersFile))];
  const sources = named.length > 0 ? named : admin.addressesIn(process.env[MASTERS_VARIABLE] ?? '');
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
