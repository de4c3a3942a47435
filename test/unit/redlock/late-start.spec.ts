import { describe, expect, it } from '@jest/globals';
import { LockLostError, type LockService, QuorumUnavailableError } from 'nestjs-redlock';
import { ManualClock, MemoryMaster, memoryLockService } from 'nestjs-redlock/testing';
import type { Lock } from '../../../lib/locks/lock.js';
import type { AcquisitionObserver } from '../../../lib/operate/observer.js';
import { Rig } from '../support/rig.js';

const TTL = 1_000;
const OPTIONS = { ttl: TTL, wait: 60_000 };

type Work = (lock: Lock) => void;

function unlessLost(error: unknown): void {
  if (!(error instanceof LockLostError)) throw error;
}

/** The ways to work under a lock: the work runs as soon as the lock is there, and is over at once. */
const WAYS: [
  string,
  (locks: LockService, resource: string | string[], options: object, work: Work) => Promise<unknown>,
][] = [
  ['withLock', (locks, resource, options, work) => locks.withLock(resource, options, work).catch(unlessLost)],
  [
    'acquire behind several functions of the application',
    async (locks, resource, options, work) => {
      const innermost = async (): Promise<Lock> => await locks.acquire(resource, options);
      const inner = async (): Promise<Lock> => await innermost();
      const lock = await inner();
      work(lock);
      await lock.release();
    },
  ],
];

const KINDS: [string, object, names?: string[][]][] = [
  ['a lock', {}],
  ['a lock that is extended', { extend: true }],
  ['a shared lock', { mode: 'shared' }],
  ['a permit', { permits: 3 }],
  ['several resources', {}, ['a b', 'c d', 'e a'].map((names) => names.split(' '))],
];

function rig(masters = 3) {
  const clock = new ManualClock();
  const servers = Array.from({ length: masters }, () => new MemoryMaster(clock));
  const locks = memoryLockService({ clock, masters: servers });
  const left: number[] = [];
  return {
    ...{ clock, locks, left },
    keys: () => servers.map(({ size }) => size),
    /** Notes for how long the lock can be relied on when the work begins, and then blocks the process. */
    blocks: (milliseconds: number) => (lock: Lock) => {
      left.push(lock.remaining());
      clock.stall(milliseconds);
    },
  };
}

describe.each(WAYS)('Work that begins by %s', (_, work) => {
  // Protocol 4.10
  it.each(KINDS)(
    'never begins under %s that ended while other work of the same turn blocked the process',
    async (_, kind, names = [['a'], ['b'], ['c']]) => {
      const { clock, locks, left, keys, blocks } = rig();
      const all = names.map((each) => work(locks, each, { ...OPTIONS, ...kind }, blocks(2 * TTL)));
      await clock.advance(10_000);
      await Promise.all(all);
      expect(left).toHaveLength(names.length);
      for (const remaining of left) expect(remaining).toBeGreaterThan(TTL / 2);
      expect(keys()).toEqual([0, 0, 0]);
    },
  );

  it.each([
    ['without waiting', { wait: 0 }],
    ['with a budget that ends meanwhile', { wait: TTL }],
  ])('fails %s, and nothing runs', async (_, budget) => {
    const { clock, locks, left, keys, blocks } = rig();
    const first = work(locks, 'a', OPTIONS, blocks(2 * TTL));
    const second = work(locks, 'b', { ...OPTIONS, ...budget }, blocks(0)).catch((error: unknown) => error);
    await clock.settle();
    await first;
    const error = await second;
    expect([left.length, error]).toEqual([1, expect.any(QuorumUnavailableError)]);
    expect((error as Error).message).toBe(
      'cannot begin under the lock on "b" before its validity has ended: 2 of 3 masters must vote. They did, and this ' +
        'process was blocked until the lock of 1000 ms had ended, so nothing ran: keep synchronous work short, or pass a ' +
        'longer ttl or `wait`',
    );
    expect(keys()).toEqual([0, 0, 0]);
  });
});

describe('A lock that ended before its work could begin', () => {
  /** Two locks that are granted in the same turn: the work under the first one blocks the process. */
  async function blocked(observer: AcquisitionObserver = {}, wait = OPTIONS.wait) {
    const rig = new Rig({ observer: { acquiring: ([name]) => (name === 'b' ? observer : undefined) } });
    const first = rig.acquire('a', OPTIONS).then(() => rig.clock.stall(2 * TTL));
    const second = await rig.outcomeOf(rig.acquire('b', { ...OPTIONS, wait }));
    await first;
    return { rig, second };
  }

  it('is released and acquired anew, with another token', async () => {
    const { rig, second } = await blocked();
    expect(second.value?.isHeld).toBe(true);
    for (const master of rig.masters) {
      const tokens = master.requests('acquire').flatMap(({ keys, token }) => (keys[0]?.includes('b') ? [token] : []));
      expect(new Set(tokens).size).toBe(2);
      expect(master.requests('release')[0]?.token).toBe(tokens[0]);
    }
  });

  it('counts as one more attempt for observers, and not as a loss', async () => {
    const events: unknown[] = [];
    const { rig, second } = await blocked({
      granted: ({ attempts }) => events.push(['granted', attempts]),
      ended: (_, loss) => events.push(['ended', loss]),
    });
    await second.value?.release();
    expect(events).toEqual([
      ['granted', 2],
      ['ended', undefined],
    ]);
    expect(rig.losses).toEqual([]);
  });

  it('is reported as granted and ended if the observer itself was too slow, and begins another acquisition', async () => {
    const events: string[] = [];
    const rig: Rig = new Rig({
      observer: {
        acquiring: () => {
          events.push('acquiring');
          return {
            granted: () => {
              if (events.push('granted') === 2) rig.clock.stall(2 * TTL);
            },
            ended: (_, loss) => events.push(loss ? 'lost' : 'ended'),
          };
        },
      },
    });
    const lock = await rig.acquire('a', OPTIONS);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(events).toEqual(['acquiring', 'granted', 'ended', 'acquiring', 'granted', 'ended']);
    expect(rig.losses).toEqual([]);
  });

  it('is not kept for `minHold`', async () => {
    const { clock, locks, keys } = rig();
    const first = locks.withLock('a', OPTIONS, () => clock.stall(2 * TTL)).catch(unlessLost);
    const options = { ttl: TTL, minHold: 20 * TTL, wait: 0 };
    const second = locks.withLock('b', options, () => undefined).catch((error: unknown) => error);
    await clock.settle();
    await first;
    expect(await second).toBeInstanceOf(QuorumUnavailableError);
    expect(keys()).toEqual([0, 0, 0]);
  });
});

it('Work inside a lock of its call chain acquires a lock of its own if that one has ended before it begins', async () => {
  const { clock, locks, left } = rig();
  const outer = locks
    .withLock('a', { ...OPTIONS, extend: false }, async (lock) => {
      const inner = locks.withLock('a', { ...OPTIONS, reentrant: true }, (own) => {
        left.push(own.remaining());
        expect(own).not.toBe(lock);
      });
      clock.stall(2 * TTL);
      await inner;
    })
    .catch((error: unknown) => error);
  await clock.settle();
  expect(await outer).toBeInstanceOf(LockLostError);
  expect(left).toHaveLength(1);
  expect(left[0]).toBeGreaterThan(TTL / 2);
});
