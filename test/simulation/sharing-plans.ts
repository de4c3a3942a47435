import type { Chance } from './engine/chance.js';
import type { Operation } from './schedule.js';

/** Lets some of the operations share their lock, and others take permits. */
export function letShare(chance: Chance, operations: readonly Operation[]): readonly Operation[] {
  const shared = chance.pick([0.4, 0.6, 0.6, 0.9]);
  const limited = chance.pick([0, 0, 0.3, 0.9]);
  const permits = chance.pick([1, 2, 2, 2, 3, 6]);
  return operations.map((operation) => {
    if (operation.resources.length === 1 && chance.happens(limited)) {
      // While another version is being deployed, processes differ in the number.
      return { ...withoutState(operation), permits: permits + (chance.happens(0.1) ? 1 : 0) };
    }
    if (!chance.happens(shared)) return operation;
    return { ...withoutState(operation), mode: 'shared', minHold: 0, tokenAt: undefined };
  });
}

/** Only the holder of an exclusive lock uses a state. */
export function withoutState({ state: _, ...operation }: Operation): Operation {
  return operation;
}
