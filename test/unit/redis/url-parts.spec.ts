import { describe, expect, it } from '@jest/globals';
import { addressesIn } from '../../../lib/redis/url-parts.js';

describe('addressesIn', () => {
  it.each([
    ['', []],
    [' , ', []],
    ['redis://a', ['redis://a']],
    ['redis://a, rediss://b,/run/a.sock', ['redis://a', 'rediss://b', '/run/a.sock']],
    ['redis://a,,redis://b,', ['redis://a', 'redis://b']],
    ['redis://a,redis+sentinel://b:1,c:2/m,redis://d', ['redis://a', 'redis+sentinel://b:1,c:2/m', 'redis://d']],
    ['redis+cluster://a:1,b:2,rediss+cluster://c', ['redis+cluster://a:1,b:2', 'rediss+cluster://c']],
  ])('splits a list at its commas, but not between the hosts of one URL: %j', (list, addresses) => {
    expect(addressesIn(list)).toEqual(addresses);
  });
});
