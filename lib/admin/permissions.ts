import { Keyspace } from '../settings/keyspace.js';
import type { Settings } from '../settings/settings.js';
import { type Contact, isFailure, type ContactResult } from './contact.js';
import {
  ruleFor,
  ruleForNames,
  type Trial as CommandTrial,
  trialNames,
  trialsInScripts,
} from '../redis/permissions.js';

export interface MissingPermission {
  // As an ACL rule: `+set`, `~lock:*`, `&lock:*`.
  readonly rule: string;
  // No user has it: the command is disabled or renamed.
  readonly disabled: boolean;
}

// Without these, exclusive locks still work, but waiting processes poll, and shared locks and permits are refused.
const DISPENSABLE = [
  ...['+publish', '+pubsub|numsub', '+subscribe', '+zadd', '+zcard', '+zrem', '+zscore'],
  ...['+zrange', '+zremrangebyscore', '+pexpireat', '+mget'],
];

export function isVital({ rule }: MissingPermission, guarded: boolean): boolean {
  if (rule === '+info') return guarded;
  return !DISPENSABLE.includes(rule) && !rule.startsWith('&');
}

interface Trial {
  readonly unused: string;
}

// Tries each command in a form that changes nothing: on an unused name, or with arguments that the command itself
// refuses, since a server checks the permissions before the arguments. `ACL DRYRUN` would need more permissions than a
// lock.
export async function missingPermissions(
  contact: Contact,
  settings: Settings,
  trial: Trial,
): Promise<readonly MissingPermission[]> {
  const keyspace = new Keyspace(settings.keyPrefix);
  const outcomes = await Promise.all(
    trialsOf(keyspace, trial).map(async ([command, ...args]) => ({
      command,
      outcome: await contact.call(command, ...args),
    })),
  );
  const channel = keyspace.channelOf(trial.unused);
  outcomes.push({ command: 'subscribe', outcome: await contact.subscribe(channel) });
  const missing = outcomes.flatMap(({ command, outcome }) => missingIn(command, outcome, settings));
  return [...new Map(missing.map((one) => [one.rule, one])).values()];
}

function trialsOf(keyspace: Keyspace, { unused }: Trial): CommandTrial[] {
  const names = trialNames(keyspace, unused);
  return [
    ...trialsInScripts(names),
    ['eval', 'return 1', 0],
    ['evalsha', '0'.repeat(40), 0],
    ['script', 'LOAD', 'return 1'],
  ];
}

function missingIn(command: string, outcome: ContactResult, { keyPrefix }: Settings): MissingPermission[] {
  if (!isFailure(outcome)) return [];
  const rule = ruleFor(command);
  if (/^unknown command/i.test(outcome.reason)) return [{ rule, disabled: true }];
  if (outcome.code !== 'NOPERM') return [];
  const isAboutCommand = /\bto run the\b/.test(outcome.reason);
  return [{ rule: (isAboutCommand ? undefined : ruleForNames(outcome, keyPrefix)) ?? rule, disabled: false }];
}
