import { describe, expect, it } from '@jest/globals';
import { RequestEncoder } from '../../../lib/redis/request-encoding.js';
import { acquiring, extending } from '../../support/ask.js';

const QUEUE = { queues: ['queue of a'], waiter: 'me', waited: 12.3 };
const acquisition = acquiring(['a'], 'secret', { ttl: 999.5, queue: QUEUE });
const release = {
  op: 'release',
  keys: ['a'],
  queues: ['queue of a'],
  token: 'secret',
  keepFor: 0,
  ttl: 1_000,
} as const;

describe('One request of the usual kind', () => {
  it('is sent as a list of arguments, which a server need not parse', () => {
    const encoder = new RequestEncoder();
    expect(encoder.encode([acquisition], true)).toEqual(['take', 'a', 'secret', '1000', 'queue of a', 'me', '13']);
    expect(encoder.encode([release], true)).toEqual(['give', 'a', 'secret', 'queue of a']);
  });

  it('has no place in a queue if this process would not be notified', () => {
    expect(new RequestEncoder().encode([acquisition], false)).toEqual(['take', 'a', 'secret', '1000']);
  });
});

describe('Any other requests', () => {
  const decoded = (parts: readonly string[]): unknown => {
    expect(parts).toHaveLength(1);
    return JSON.parse(parts[0]!);
  };

  it('are sent as one JSON text', () => {
    const encoder = new RequestEncoder();
    expect(decoded(encoder.encode([extending(['a', 'b'], 'secret', 5)], true))).toEqual([
      ['extend', ['a', 'b'], 'secret', '5'],
    ]);
    expect(decoded(encoder.encode([acquisition, release], true))).toEqual([
      ['take', 'a', 'secret', '1000', 'queue of a', 'me', '13'],
      ['give', 'a', 'secret', 'queue of a'],
    ]);
    const pair = acquiring(['a', 'b'], 'secret', { ttl: 5, queue: QUEUE });
    expect(decoded(encoder.encode([pair], true))).toEqual([
      ['acquire', ['a', 'b'], 'secret', '5', ['queue of a'], 'me', 12],
    ]);
  });
});
