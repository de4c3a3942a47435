import { type KeyNames, Keyspace } from '../core/keyspace.js';
import type { Target } from '../core/target.js';
import type { Settings } from '../core/settings/settings.js';

export function keyspaceOf({ keyPrefix }: Settings): Keyspace {
  return new Keyspace(keyPrefix);
}

/** What a key stands for. */
export function targetNamed(key: string, keyspace: Keyspace): Target {
  return keyspace.permitOf(key) ?? { resource: keyspace.resourceOf(key) };
}

export function namesOf({ resource, slot }: Target, settings: Settings): KeyNames {
  const keyspace = keyspaceOf(settings);
  return slot === undefined ? keyspace.namesOf([resource]) : keyspace.namesOfSlots(resource, [slot]);
}

export function keyOf(target: Target, settings: Settings): string {
  return namesOf(target, settings).keys[0] ?? '';
}
