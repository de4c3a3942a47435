import { describe, expect, it } from '@jest/globals';
import { holderFrom, tokenFrom } from '../../../lib/core/holder.js';

describe('A token', () => {
  it('says which process holds the lock, and since when', () => {
    const token = tokenFrom('00ff', 'web-7d9f:1', 1_790_000_000_000.9);
    expect(holderFrom(token)).toEqual({ instance: 'web-7d9f:1', since: new Date(1_790_000_000_000) });
  });

  it('may name a process that has the separator in its name', () => {
    expect(holderFrom(tokenFrom('00ff', 'a@b@c', 5))).toEqual({ instance: 'a@b@c', since: new Date(5) });
  });

  it.each([
    '',
    'another program',
    '00ff',
    '00ff@',
    '00ff@k@',
    'reserved for 1@k@x',
    'released by force',
    '@k@x',
    '5f3a@productionhost@eu',
    'ab@k@two words',
    'ab@k@a\nb',
  ])('of another program names no holder: %j', (value) => expect(holderFrom(value)).toBeUndefined());
});
