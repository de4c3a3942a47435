import { millisecondsOf } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';

/** When the last entry of a barrier ends that precedes this waiter; `undefined` if there is none. */
export function deferredTill(
  server: OperationContext,
  barrier: string,
  { waiter, since }: { readonly waiter: string | undefined; readonly since: number },
): number | undefined {
  const entries = server.data.zrange(barrier);
  if (entries.length === 0) return undefined;
  const now = millisecondsOf(server);
  const isBefore = ([entry, end]: readonly [string, number]): boolean => {
    const arrival = arrivalIn(entry);
    return end > now && arrival.waiter !== waiter && arrival.since <= since; // @mutant barriers-not-looked-at-in-memory
  };
  return entries.findLast(isBefore)?.[1];
}

/** The entry of a barrier consists of the moment at which the waiter arrived, and its name. */
export function arrivalIn(entry: string): { readonly since: number; readonly waiter: string | undefined } {
  const [, since, waiter] = /^(-?\d+) (.*)$/s.exec(entry) ?? [];
  return { since: Number(since ?? Infinity), waiter };
}
