import { describe, expect, it } from '@jest/globals';
import { describeDatabases, sellTwo } from './sell-two.js';

describeDatabases((_name, url) => {
  describe('with the lock outside the transaction', () => {
    it('the last item is sold once, and charged once', async () => {
      await expect(sellTwo('outside', url(), 1)).resolves.toEqual({
        sales: ['sold, 0 left', 'teapot is sold out'],
        charged: ['anna'],
        left: 0,
      });
    }, 60_000);

    it('two sales take two items', async () => {
      await expect(sellTwo('outside', url(), 10)).resolves.toEqual({
        sales: ['sold, 9 left', 'sold, 8 left'],
        charged: ['anna', 'bert'],
        left: 8,
      });
    }, 60_000);
  });
});
