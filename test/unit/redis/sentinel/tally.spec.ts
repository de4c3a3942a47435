import { describe, expect, it } from '@jest/globals';
import { type Asked, type SentinelAnswer, tally } from '../../../../lib/redis/sentinel/tally.js';

const P = { host: '10.0.0.1', port: 6379 };
const Q = { host: '10.0.0.2', port: 6379 };

function answer(id: string | undefined, peers: string, address = P, epoch = 0): SentinelAnswer {
  const others = Array.from(peers).map((peer) => ({ id: peer, address: { host: peer, port: 26_379 } }));
  return { id, peers: others, named: { address, epoch } };
}

function asked(endpoint: string, given?: SentinelAnswer, isListed = true): Asked {
  return { endpoint, isListed, id: given?.id, answer: given, problem: given ? undefined : 'no answer' };
}

describe('The count of what sentinels say', () => {
  it('takes the primary that a majority of all of them names', () => {
    const result = tally([asked('a:1', answer('a', 'bc')), asked('b:1', answer('b', 'ac')), asked('c:1')], true);
    expect(result).toEqual({ primary: { address: P, epoch: 0 }, isMajority: true });
  });

  it('counts sentinels that are not listed among all of them', () => {
    const result = tally([asked('a:1', answer('a', 'bcde')), asked('b:1', answer('b', 'acde'))], true);
    expect(result).toMatchObject({ primary: undefined, reason: expect.stringContaining('(3 of 5)') });
  });

  it('counts listed sentinels that do not answer and that no other one knows', () => {
    const result = tally([asked('a:1', answer('a', '')), asked('b:1'), asked('c:1')], true);
    expect(result).toMatchObject({ primary: undefined, reason: expect.stringContaining('(2 of 3)') });
  });

  it('counts one sentinel under two addresses once', () => {
    const both = [asked('localhost:1', answer('a', 'bc')), asked('127.0.0.1:1', answer('a', 'bc'))];
    expect(tally(both, true)).toMatchObject({ primary: undefined });
    expect(tally([asked('x:1', answer('a', '')), asked('y:1', answer('a', ''))], true)).toMatchObject({
      isMajority: true,
    });
  });

  it('does not add up those that name one address in different epochs', () => {
    const three = [
      asked('a:1', answer('a', 'bc', P, 0)),
      asked('b:1', answer('b', 'ac', Q, 1)),
      asked('c:1', answer('c', 'ab', P, 2)),
    ];
    expect(tally(three, true)).toMatchObject({ primary: undefined });
  });

  it('takes the word of one sentinel as a majority if there is no other', () => {
    expect(tally([asked('a:1', answer('a', ''))], true)).toMatchObject({ isMajority: true });
  });

  it('does not count a sentinel that does not tell its id, unless most answers are enough', () => {
    const one = [asked('a:1', answer(undefined, ''))];
    expect(tally(one, true)).toMatchObject({ primary: undefined });
    expect(tally(one, false)).toMatchObject({ primary: { address: P } });
  });

  it('names each sentinel that did not answer, and why', () => {
    const { reason } = tally([asked('a:1', answer('a', 'b')), asked('b:1')], true) as { reason: string };
    expect(reason).toBe(
      'a majority of its sentinels (2 of 2) must name its address: 1 of 2 name 10.0.0.1:6379; b:1: no answer',
    );
  });
});
