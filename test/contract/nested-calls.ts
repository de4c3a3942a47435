import { expect, it } from '@jest/globals';
import type { Arena } from './lost-update.js';

const WAIT = { wait: '30s' } as const;

export function servesNestedCalls(open: () => Promise<Arena>): void {
  it('serves a call chain before a call of its process that waits for the chain', async () => {
    const { contenders, end } = await open();
    try {
      const [contender] = contenders;
      const turns: string[] = [];
      const outer = await contender!.acquire('a', '5s', WAIT);
      const both = contender!.acquire(['a', 'b'], '5s', WAIT).then((lock) => {
        turns.push('both');
        return lock.release();
      });
      const inner = await contender!.acquire('b', '5s', WAIT, true);
      turns.push('nested');
      await inner.release();
      await outer.release();
      await both;
      expect(turns).toEqual(['nested', 'both']);
    } finally {
      await end();
    }
  }, 10_000);
}
