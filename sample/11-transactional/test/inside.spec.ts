import { describe, expect, it } from '@jest/globals';
import { describeDatabases, sellTwo } from './sell-two.js';

describeDatabases((name, url) => {
  describe('with the lock inside the transaction', () => {
    // SQLite refuses a write that depends on an old read. By then it is too late, because the customer has been
    // charged.
    const secondSale = (left: number): unknown =>
      name === 'SQLite' ? expect.stringMatching(/database is locked/) : `sold, ${left} left`;

    it('the last item is charged twice', async () => {
      await expect(sellTwo('inside', url(), 1)).resolves.toEqual({
        sales: ['sold, 0 left', secondSale(0)],
        charged: ['anna', 'bert'],
        left: 0,
      });
    }, 60_000);

    it('two sales take one item', async () => {
      await expect(sellTwo('inside', url(), 10)).resolves.toEqual({
        sales: ['sold, 9 left', secondSale(9)],
        charged: ['anna', 'bert'],
        left: 9,
      });
    }, 60_000);
  });
});
