import { describe, expect, it } from '@jest/globals';
import { encodeGroups, isPlain, RequestEncoder } from '../../../lib/redis/request-encoding.js';
import { acquiring, extending, picking, sharing, barriersOf } from '../../support/ask.js';

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

describe('A request for shared keys', () => {
  const encoded = (...requests: Parameters<RequestEncoder['encode']>[0]): unknown =>
    JSON.parse(new RequestEncoder().encode(requests, true)[0]!);
  const shared = sharing(['a'], 'secret', { ttl: 999.5, waited: 12.3, queue: QUEUE });

  it('is never sent as one for an exclusive key', () => {
    expect(encoded(shared)).toEqual([['share', ['a'], 'secret', '1000', barriersOf(['a']), 12, ['queue of a'], 'me']]);
    const released = new RequestEncoder().encode([{ ...release, isShared: true }], true);
    expect(released).toEqual(['part', 'a', 'secret', 'queue of a']);
    expect(encoded({ ...extending(['a'], 'secret', 5), isShared: true })).toEqual([['prolong', ['a'], 'secret', '5']]);
    expect(isPlain(sharing(['a'], 'secret'))).toBe(false);
    expect(isPlain(acquiring(['a'], 'secret'))).toBe(true);
  });

  it('has no place in a queue if this process would not be notified', () => {
    const barrier = barriersOf(['a'])[0];
    expect(new RequestEncoder().encode([shared], false)).toEqual(['join', 'a', 'secret', '1000', barrier, '13']);
  });

  it('leaves the queue as the waiter that it is, or leaves its place to the next waiter of its process', () => {
    const leave = { op: 'leave', keys: ['a'], queues: ['queue of a'], waiter: 'me' } as const;
    expect(encoded(leave, { ...leave, isShared: true }, { ...leave, nextWaited: 12.3 })).toEqual([
      ['leave', ['a'], 'me', ['queue of a'], 0],
      ['leave', ['a'], 'me', ['queue of a'], 1],
      ['leave', ['a'], 'me', ['queue of a'], 0, 12],
    ]);
  });

  it('is kept waiting by a barrier that is named like the keys', () => {
    const want = { op: 'want', keys: ['a'], barriers: barriersOf(['a']), waiter: 'me' } as const;
    expect(encoded({ ...want, waited: 12.3 }, { ...want, waited: undefined })).toEqual([
      ['want', barriersOf(['a']), 'me', 12],
      ['want', barriersOf(['a']), 'me'],
    ]);
  });
});

describe('A request for one of several keys', () => {
  it('names the keys in the order in which to try them, and is never a plain SET', () => {
    const request = picking(['b', 'a'], 'secret', { ttl: 5, queue: QUEUE });
    const [text = ''] = new RequestEncoder().encode([request], true);
    expect(JSON.parse(text)).toEqual([['pick', ['b', 'a'], 'secret', '5', ['queue of a'], 'me', 12]]);
    expect(isPlain(picking(['a'], 'secret'))).toBe(false);
  });
});

describe('encodeGroups', () => {
  it('gives each group its marker, before its requests', () => {
    const group = { marker: 'seal', nonce: 'n', history: '', counters: 'c', requests: [acquiring(['key'], 'token')] };
    const text = encodeGroups([group, { ...group, marker: 'other' }], false);
    expect(JSON.parse(text)).toEqual({
      groups: [
        ['seal', 'n', '', 'c', [['take', 'key', 'token', '60000']]],
        ['other', 'n', '', 'c', [['take', 'key', 'token', '60000']]],
      ],
    });
  });
});
