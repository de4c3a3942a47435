import { describe, expect, it } from '@jest/globals';
import { holderFrom, TokenSource } from '../../../lib/core/holder.js';
import { SystemRandom } from '../../../lib/runtime/system-random.js';

const tokensOf = (instance: string): TokenSource => new TokenSource(new SystemRandom(), instance);

const SECRET = '-_aZ09x'.repeat(4);

describe('A token', () => {
  it('says which process holds the lock, and since when', () => {
    const token = tokensOf('web-7d9f:1').next(1_790_000_000_000.9);
    expect(holderFrom(token)).toEqual({ instance: 'web-7d9f:1', since: new Date(1_790_000_000_000) });
  });

  it('is another one for each attempt of one moment, and says the time of each', () => {
    const tokens = tokensOf('a');
    const made = [tokens.next(5), tokens.next(5), tokens.next(6)];
    expect(new Set(made).size).toBe(3);
    expect(made.map((token) => holderFrom(token)?.since.getTime())).toEqual([5, 5, 6]);
  });

  it('may name a process that has the separator in its name', () => {
    expect(holderFrom(tokensOf('a@b@c').next(5))).toEqual({ instance: 'a@b@c', since: new Date(5) });
  });

  it.each([
    '',
    'another program',
    SECRET,
    `${SECRET}@`,
    `${SECRET}@k@`,
    `${SECRET}0@k@x`,
    `${SECRET.slice(1)}@k@x`,
    'reserved for 1@k@x',
    'released by force',
    '@k@x',
    `${SECRET}@productionhost@eu`,
    `${SECRET}@k@two words`,
    `${SECRET}@k@a\nb`,
  ])('of another program names no holder: %j', (value) => expect(holderFrom(value)).toBeUndefined());
});
