import { RedlockConfigError } from '../settings/config.error.js';
import type { LockService } from './lock.service.js';

// One object can be a provider of several applications of one process, and its methods lock at one service: any that lives of
// those that lock the same keys.
export function living(service: LockService): LockService {
  if (!service.isStopped || !service.standIns) return service;
  return [...service.standIns].find(({ isStopped }) => !isStopped) ?? service;
}

// `provider` names the object.
export function standIn(provider: string, object: object, known: LockService, added: LockService): void {
  if (!lockSameKeys(known, added)) {
    const requirement =
      'must not belong to two applications of this process whose lock services have different masters or keyPrefix: its ' +
      'methods would lock for one of them only. Let each application make its own (useClass or useFactory), close the other ' +
      'application first, or give both the same keyPrefix and masters, written alike';
    throw new RedlockConfigError(`provider ${provider} of class ${object.constructor.name}`, object, requirement);
  }
  const all = new Set([...(known.standIns ?? []), ...(added.standIns ?? [])].filter(({ isStopped }) => !isStopped));
  for (const each of all) each.standIns = all;
}

function lockSameKeys(one: LockService, other: LockService): boolean {
  const [a, b] = [one.environment.settings, other.environment.settings];
  const isKnown = (master: unknown): boolean => other.masters.includes(master);
  return a.keyPrefix === b.keyPrefix && one.masters.length === other.masters.length && one.masters.every(isKnown);
}
