import { describe, expect, it } from '@jest/globals';
import { Viewers } from '../../../lib/dashboard/viewers.js';

describe('Viewers', () => {
  it('admits another page when one has not asked for five seconds', () => {
    const viewers = new Viewers(2);
    viewers.admit('a', 0);
    viewers.admit('b', 1_000);
    expect(() => viewers.admit('c', 4_999)).toThrow('2 pages are open already');
    viewers.admit('c', 5_000);
    viewers.admit('b', 5_500);
    expect(() => viewers.admit('a', 6_100)).toThrow('2 pages are open already');
  });
});
