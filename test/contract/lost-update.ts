import { expect, it } from '@jest/globals';
import type { Contender } from '../support/redlocks.js';

export interface Arena {
  readonly contenders: readonly Contender[];
  readonly end: () => Promise<void>;
}

/** Contenders that read, pause and write: an update is lost as soon as two of them are inside at once. */
export function neverLosesAnUpdate(open: () => Promise<Arena>): void {
  it('never loses an update', async () => {
    const { contenders, end } = await open();
    try {
      const numbers = new Map<string, number>();
      const resources = ['a', 'b', 'c'];
      const workers = contenders.flatMap((contender) =>
        Array.from({ length: 4 }, (_, worker) => increment(contender, resources, numbers, worker)),
      );
      await Promise.all(workers);
      const total = [...numbers.values()].reduce((sum, number) => sum + number, 0);
      expect(total).toBe(workers.length * ROUNDS * 2);
    } finally {
      await end();
    }
  }, 60_000);
}

const ROUNDS = 10;

async function increment(
  contender: Contender,
  resources: readonly string[],
  numbers: Map<string, number>,
  worker: number,
): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    // Two of three keys, in any order: a contender takes both or none, and no two contenders wait for each other.
    const first = resources[(worker + round) % 3]!;
    const second = resources[(worker + 2 * round + 1 + (round % 2)) % 3]!;
    const keys = [...new Set([first, second])];
    await using lock = await contender.acquire(keys, '5s', { wait: '60s', extend: round % 2 === 0 });
    const before = keys.map((key) => numbers.get(key) ?? 0);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
    lock.assertHeld();
    keys.forEach((key, i) => numbers.set(key, before[i]! + 2 / keys.length));
  }
}
