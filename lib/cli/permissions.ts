import { Keyspace } from '../core/keyspace.js';
import type { Settings } from '../core/settings/settings.js';
import { type Contact, type Failure, isFailure, type Outcome } from './contact.js';
import { literally } from './pattern.js';

/** A permission that locks need and the user lacks. */
export interface MissingPermission {
  /** As an ACL rule: `+set`, `~lock:*`, `&lock:*`. */
  readonly rule: string;
  /** Whether no user has it, because the command is disabled or renamed. */
  readonly disabled: boolean;
}

/**
 * Without these, exclusive locks still work, but waiting processes poll, shared locks and permits are refused, and only
 * the marker reveals a restart.
 */
const DISPENSABLE = [
  ...['+info', '+publish', '+pubsub|numsub', '+subscribe', '+zadd', '+zcard', '+zrem', '+zpopmin'],
  ...['+zrange', '+zremrangebyscore', '+pexpireat', '+mget'],
];

/** The only subcommand that is needed of each of these commands. */
const SUBCOMMANDS: Readonly<Record<string, string>> = { script: 'load', pubsub: 'numsub' };

/** Whether no exclusive lock can be acquired without it. */
export function isVital({ rule }: MissingPermission): boolean {
  return !DISPENSABLE.includes(rule) && !rule.startsWith('&');
}

/** What is tried. */
export interface Trial {
  /** A name that no lock has. */
  readonly unused: string;
  /** The name as the server stores it. */
  readonly stored: (name: string) => string;
  /** The subcommands of CLUSTER that locks need. */
  readonly subcommands?: readonly string[] | undefined;
}

/**
 * The permissions that locks need and the user of a connection lacks.
 *
 * Tries each command in a form that changes nothing: on an unused name, or with arguments that the command itself
 * refuses, since a server checks the permissions before the arguments. `ACL DRYRUN` would need more permissions than a
 * lock.
 */
export async function missingPermissions(
  contact: Contact,
  settings: Settings,
  trial: Trial,
): Promise<readonly MissingPermission[]> {
  const keyspace = new Keyspace(settings.keyPrefix);
  const outcomes = await Promise.all(
    trialsOf(keyspace, trial).map(async ([command, ...args]) => ({
      command: command === 'cluster' ? `cluster|${String(args[0]).toLowerCase()}` : command,
      outcome: await contact.call(command, ...args),
    })),
  );
  const channel = keyspace.channelOf(trial.unused);
  outcomes.push({ command: 'subscribe', outcome: await contact.subscribe(channel) });
  const missing = outcomes.flatMap(({ command, outcome }) => missingIn(command, outcome, settings));
  return [...new Map(missing.map((one) => [one.rule, one])).values()];
}

function trialsOf(keyspace: Keyspace, { unused, stored, subcommands = [] }: Trial): [string, ...(string | number)[]][] {
  const key = stored(keyspace.keyOf(unused));
  const own = stored(keyspace.trialOf(unused));
  return [
    // The command refuses both options together.
    ['set', key, '', 'NX', 'XX'],
    ...['get', 'del', 'exists', 'pttl'].map((command): [string, string] => [command, key]),
    ['pexpire', key, 1],
    ['zadd', own, 'XX', 0, 'absent'],
    ['zrem', own, 'absent'],
    ['zcard', own],
    ['zpopmin', own],
    ['zrange', own, 0, 0],
    ['zremrangebyscore', own, 0, 0],
    ['pexpireat', own, 1],
    ['mget', own],
    ['hget', own, 'nonce'],
    ['hmget', own, 'nonce'],
    // The command refuses a field without a value.
    ['hset', own, 'nonce', '', 'max'],
    ['publish', keyspace.channelOf(unused), ''],
    ['pubsub', 'NUMSUB', keyspace.channelOf(unused)],
    ['time'],
    ['info', 'server'],
    ['eval', 'return 1', 0],
    ['evalsha', '0'.repeat(40), 0],
    ['script', 'LOAD', 'return 1'],
    ...subcommands.map((subcommand): [string, string] => ['cluster', subcommand]),
  ];
}

function missingIn(command: string, outcome: Outcome, { keyPrefix }: Settings): MissingPermission[] {
  if (!isFailure(outcome)) return [];
  const subcommand = SUBCOMMANDS[command];
  const rule = `+${command}${subcommand === undefined ? '' : `|${subcommand}`}`;
  if (/^unknown command/i.test(outcome.reason)) return [{ rule, disabled: true }];
  if (outcome.code !== 'NOPERM') return [];
  return [{ rule: isAboutName(outcome) ?? rule, disabled: false }];

  function isAboutName({ reason }: Failure): string | undefined {
    if (/\bto run the\b/.test(reason)) return undefined;
    const pattern = `${literally(keyPrefix)}*`;
    return /\bchannels?\b/.test(reason) ? `&${pattern}` : `~${pattern}`;
  }
}
