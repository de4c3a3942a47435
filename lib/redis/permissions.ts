import type { Keyspace } from '../core/keyspace.js';
import type { RefusedReply } from '../core/master.interface.js';

/** A command with its arguments, in a form that changes nothing. */
export type Trial = readonly [command: string, ...args: (string | number)[]];

/** The names on which commands are tried. No lock has them. */
export interface TrialNames {
  readonly key: string;
  readonly channel: string;
  /** A hash of the library, if it has to be read. */
  readonly marker?: string;
}

/** The only subcommand that is needed of each of these commands. */
const SUBCOMMANDS: Readonly<Record<string, string>> = { script: 'load', pubsub: 'numsub' };

/**
 * The commands that locks need inside scripts: on an unused name, or with arguments that the command itself refuses, since
 * a server checks the permissions before the arguments. `ACL DRYRUN` would need more permissions than a lock.
 */
export function trialsInScripts({ key, channel, marker }: TrialNames): Trial[] {
  return [
    // The command refuses both options together.
    ['set', key, '', 'NX', 'XX'],
    ...['get', 'del', 'exists', 'pttl'].map((command): Trial => [command, key]),
    ['pexpire', key, 1],
    ['zadd', key, 'XX', 0, 'absent'],
    ['zrem', key, 'absent'],
    ['zcard', key],
    ['zpopmin', key],
    ['zrange', key, 0, 0],
    ['zremrangebyscore', key, 0, 0],
    ['pexpireat', key, 1],
    ['mget', key],
    ['hget', marker ?? key, 'nonce'],
    ['hmget', marker ?? key, 'nonce'],
    // The command refuses a field without a value.
    ['hset', marker ?? key, 'nonce', '', 'max'],
    ['publish', channel, ''],
    ['pubsub', 'NUMSUB', channel],
    ['time'],
    ['info', 'server'],
  ];
}

/** The permission for a command as an ACL rule, such as `+set`. */
export function ruleFor(command: string): string {
  const subcommand = SUBCOMMANDS[command];
  return `+${command}${subcommand === undefined ? '' : `|${subcommand}`}`;
}

/** The permission for all keys or channels as an ACL rule, if a refusal concerns names and not a command. */
export function ruleForNames({ reason }: Pick<RefusedReply, 'reason'>, keyPrefix: string): string | undefined {
  const pattern = `${literally(keyPrefix)}*`;
  if (/\bchannels?\b/.test(reason)) return `&${pattern}`;
  return /\bkeys?\b/.test(reason) ? `~${pattern}` : undefined;
}

/** Escapes a string, so that as a pattern of SCAN or of an ACL rule it matches only itself. */
export function literally(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}

/** The names on which a process tries its permissions. */
export function trialNames(keyspace: Keyspace, id: string): TrialNames {
  return { key: keyspace.trialOf(id), channel: keyspace.channelOf(id) };
}
