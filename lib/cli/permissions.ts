import { ownName, type Settings } from '../core/settings.js';
import { startOfKeys } from '../core/resources.js';
import { type Contact, type Failure, isFailure, type Outcome } from './contact.js';
import { literally } from './pattern.js';

/** Something that a lock needs and its user must not do. */
export interface MissingPermission {
  /** As an ACL rule: `+set`, `~lock:*`, `&lock:*`. */
  readonly rule: string;
  /** Whether nobody may do it: the command is disabled or renamed. */
  readonly disabled: boolean;
}

/** Without these, waiting processes look for themselves and restarts are noticed by the marker only; locks go on. */
const DISPENSABLE = ['+info', '+publish', '+pubsub|numsub', '+subscribe', '+zadd', '+zrem', '+zpopmin'];

/** Of these commands, one subcommand is needed. */
const SUBCOMMANDS: Readonly<Record<string, string>> = { script: 'load', pubsub: 'numsub' };

/** Whether no lock can be taken without it. */
export function isVital({ rule }: MissingPermission): boolean {
  return !DISPENSABLE.includes(rule) && !rule.startsWith('&');
}

/**
 * What the user of a connection must not do although locks need it.
 *
 * Each command is tried, in a form that changes nothing: on a name that nobody uses, or with arguments that the command
 * itself refuses, which a server looks at after the permissions. `ACL DRYRUN` would ask for more permissions than a lock.
 */
export async function missingPermissions(
  contact: Contact,
  settings: Settings,
  unused: string,
): Promise<readonly MissingPermission[]> {
  const outcomes = await Promise.all(
    trialsOf(settings, unused).map(async ([command, ...args]) => ({
      command,
      outcome: await contact.call(command, ...args),
    })),
  );
  const channel = ownName(settings, `wake:${unused}`);
  outcomes.push({ command: 'subscribe', outcome: await contact.subscribe(channel) });
  const missing = outcomes.flatMap(({ command, outcome }) => missingIn(command, outcome, settings));
  return [...new Map(missing.map((one) => [one.rule, one])).values()];
}

function trialsOf(settings: Settings, unused: string): [string, ...(string | number)[]][] {
  const key = startOfKeys(settings.keyPrefix) + unused;
  const own = ownName(settings, `doctor:${unused}`);
  return [
    // Both together are refused by the command.
    ['set', key, '', 'NX', 'XX'],
    ...['get', 'del', 'exists', 'pttl'].map((command): [string, string] => [command, key]),
    ['pexpire', key, 1],
    ['zadd', own, 'XX', 0, 'nobody'],
    ['zrem', own, 'nobody'],
    ['zpopmin', own],
    ['hget', own, 'nonce'],
    ['hmget', own, 'nonce'],
    // A field without a value is refused by the command.
    ['hset', own, 'nonce', '', 'max'],
    ['publish', ownName(settings, `wake:${unused}`), ''],
    ['pubsub', 'NUMSUB', ownName(settings, `wake:${unused}`)],
    ['time'],
    ['info', 'server'],
    ['eval', 'return 1', 0],
    ['evalsha', '0'.repeat(40), 0],
    ['script', 'LOAD', 'return 1'],
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
