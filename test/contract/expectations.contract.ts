import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { LockService } from '../../lib/nest/lock.service.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import type { Contender } from '../support/redlocks.js';

export const UNGUARDED: RedlockOptions = { ttl: 10_000, masterTimeout: 2_000, restartGuard: false };
/** Another prefix on the same masters. */
export const ELSEWHERE: RedlockOptions = { ...UNGUARDED, keyPrefix: 'elsewhere:' };

/** Three processes on three masters, the last one with another prefix. */
export interface Company {
  readonly contenders: readonly [Contender, Contender, Contender];
  end(): Promise<void>;
}

const WAIT = { wait: '20s' } as const;
const SHORT = 600;
const TURNS = 20;
const ROUNDS = 10;

/** What users of other lock libraries rely on, as far as no other suite shows it for a service on these masters. */
export function meetsExpectations(open: () => Promise<Company>): void {
  describe('as users of other libraries expect it', () => {
    let company: Company;
    let a: LockService;
    let b: LockService;
    let elsewhere: LockService;
    let name: string;
    let count = 0;

    beforeAll(async () => {
      company = await open();
      [a, b, elsewhere] = company.contenders.map(
        (contender) => new LockService(() => contender.redlock, contender.settings),
      ) as [LockService, LockService, LockService];
    });
    beforeEach(() => void (name = `expected:${++count}`));
    afterAll(async () => {
      await Promise.all(company.contenders.map((contender) => contender.close()));
      await company.end();
    });

    const codeOf = (call: Promise<unknown>): Promise<unknown> =>
      call.then(
        () => 'no error',
        (error: unknown) => (error as { code?: string }).code,
      );
    const expectFree = async (by: LockService = b): Promise<void> => {
      const next = await by.acquire(name, WAIT);
      await next.release();
      expect(next.loss).toBeUndefined();
    };

    it('never loses an update of two of three keys, in any order', async () => {
      const numbers = new Map<string, number>();
      const resources = ['a', 'b', 'c'];
      const increment = async (locks: LockService, worker: number): Promise<void> => {
        for (let round = 0; round < ROUNDS; round++) {
          const first = resources[(worker + round) % 3]!;
          const second = resources[(worker + 2 * round + 1 + (round % 2)) % 3]!;
          const keys = [...new Set([first, second])];
          const options = { ttl: '5s', wait: '60s', extend: round % 2 === 0 } as const;
          await locks.withLock(keys, options, async () => {
            const before = keys.map((key) => numbers.get(key) ?? 0);
            await pause(Math.random() * 3);
            keys.forEach((key, i) => numbers.set(key, before[i]! + 2 / keys.length));
          });
        }
      };
      await Promise.all(Array.from({ length: 12 }, (_, worker) => increment(worker % 2 ? a : b, worker)));
      expect([...numbers.values()].reduce((sum, number) => sum + number, 0)).toBe(12 * ROUNDS * 2);
    });

    it('An attempt with the smallest ttl is granted or refused in time, and leaves nothing', async () => {
      const codes = await Promise.all(
        Array.from({ length: TURNS }, () => codeOf(a.acquire(name, { ttl: 10, wait: 0 }))),
      );
      const known = ['no error', 'LOCK_NOT_ACQUIRED', 'QUORUM_UNAVAILABLE'];
      expect(codes.filter((code) => !known.includes(String(code)))).toEqual([]);
      await expectFree();
    });

    it('An attempt is refused by services with the same prefix only', async () => {
      const lock = await a.acquire(name, WAIT);
      const other = await elsewhere.tryAcquire(name, WAIT);
      expect([await b.tryAcquire(name), other?.isHeld]).toEqual([null, true]);
      await lock.release();
      expect([(await elsewhere.inspect(name)).state, (await b.inspect(name)).state]).toEqual(['held', 'free']);
      await other?.release();
    });

    it('A lock that expires is told to its holder before the next one has it, who is not affected by the late release', async () => {
      const late = await a.acquire(name, { ...WAIT, ttl: SHORT });
      const next = await b.acquire(name, WAIT);
      expect([late.isHeld, late.remaining(), late.signal.aborted, late.loss?.cause]).toEqual([
        ...[false, 0, true, 'expired'],
      ]);
      await late.release();
      expect([next.isHeld, await a.tryAcquire(name)]).toEqual([true, null]);
      await next.release();
      expect(next.loss).toBeUndefined();
    });

    it('A lock that expires may be released in the listener that is told of it, once', async () => {
      const listener = jest.fn();
      const lock = await a.acquire(name, { ...WAIT, ttl: SHORT });
      const released = new Promise((resolve, reject) =>
        lock.signal.addEventListener('abort', (event) => {
          listener(event);
          lock.release().then(resolve, reject);
        }),
      );
      await released;
      await lock.release();
      await expectFree();
      expect(listener).toHaveBeenCalledTimes(1);
    });

    it('A lock that is released cannot be extended, nor is it brought back by an extension that was under way', async () => {
      for (let turn = 0; turn < TURNS; turn++) {
        const lock = await a.acquire(name, WAIT);
        const extension = codeOf(lock.extend());
        const release = lock.release();
        expect(['no error', 'LOCK_LOST']).toContain(await extension);
        await release;
        expect(await codeOf(lock.extend())).toBe('LOCK_LOST');
        await expectFree();
      }
    });

    it('Permits become more while all are held: there is as much more as the number has grown', async () => {
      const held = [await a.acquire(name, { ...WAIT, permits: 2 }), await b.acquire(name, { ...WAIT, permits: 2 })];
      const more = [await a.acquire(name, { ...WAIT, permits: 4 }), await b.acquire(name, { ...WAIT, permits: 4 })];
      expect([...held, ...more].map(({ slot }) => slot).sort()).toEqual([0, 1, 2, 3]);
      expect([await a.tryAcquire(name, { permits: 4 }), await b.tryAcquire(name, { permits: 2 })]).toEqual([
        ...[null, null],
      ]);
      await Promise.all([...held, ...more].map((lock) => lock.release()));
    });

    it('Permits become fewer while they are held: those that are there no more end with their holders', async () => {
      const held = await Promise.all([1, 2, 3].map(() => a.acquire(name, { ...WAIT, permits: 3 })));
      const [first] = held.filter(({ slot }) => slot === 0);
      const others = held.filter(({ slot }) => slot !== 0);
      expect(await b.tryAcquire(name, { permits: 1 })).toBeNull();
      await others[0]!.release();
      expect([await b.tryAcquire(name, { permits: 1 }), others[1]!.isHeld]).toEqual([null, true]);
      await first!.release();
      const next = await b.acquire(name, { ...WAIT, permits: 1 });
      expect(next.slot).toBe(0);
      await Promise.all([next.release(), others[1]!.release()]);
      expect(others[1]!.loss).toBeUndefined();
    });
  });
}
