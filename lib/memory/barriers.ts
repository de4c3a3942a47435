import { millisecondsOf } from './key-content.js';
import type { OperationContext } from './operation-context.interface.js';

/** The entries of a barrier that precede a waiter. */
export interface Deferral {
  /** When the last of them ends. */
  readonly till: number;
  readonly waiters: ReadonlySet<string | undefined>;
}

/** The entries of a barrier that precede this waiter; `undefined` if there is none. */
export function deferralOf(
  server: OperationContext,
  barrier: string,
  { waiter, since }: { readonly waiter: string | undefined; readonly since: number },
): Deferral | undefined {
  const entries = server.data.zrange(barrier);
  if (entries.length === 0) return undefined;
  const now = millisecondsOf(server);
  const isBefore = ([entry, end]: readonly [string, number]): boolean => {
    const arrival = arrivalIn(entry);
    return end > now && arrival.waiter !== waiter && arrival.since <= since; // @mutant barriers-not-looked-at-in-memory
  };
  const before = entries.filter(isBefore);
  const till = before.at(-1)?.[1];
  return till === undefined ? undefined : { till, waiters: new Set(before.map(([entry]) => arrivalIn(entry).waiter)) };
}

/** The entry of a barrier consists of the moment at which the waiter arrived, and its name. */
export function arrivalIn(entry: string): { readonly since: number; readonly waiter: string | undefined } {
  const [, since, waiter] = /^(-?\d+) (.*)$/s.exec(entry) ?? [];
  return { since: Number(since ?? Infinity), waiter };
}
