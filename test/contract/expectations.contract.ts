import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Lock } from '../../lib/locks/lock.js';
import type { Master } from '../../lib/masters/master.interface.js';
import { LockService } from '../../lib/nest/lock.service.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import { acquiring, ask, inspecting, releasing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import type { Contender } from '../support/redlocks.js';

export const UNGUARDED: RedlockOptions = { ttl: 10_000, masterTimeout: 2_000, restartGuard: false };
/** Another prefix on the same masters. */
export const ELSEWHERE: RedlockOptions = { ...UNGUARDED, keyPrefix: 'elsewhere:' };

/** Three processes on three masters, the last one with another prefix. */
export interface Company {
  readonly contenders: readonly [Contender, Contender, Contender];
  /** Lets all masters forget all keys. */
  forget(): Promise<unknown>;
  end(): Promise<void>;
}

const WAIT = { wait: '20s' } as const;
const SHORT = 600;
const TURNS = 20;

/** What users of other lock libraries rely on, as far as no other suite shows it for a service on these masters. */
export function meetsExpectations(open: () => Promise<Company>): void {
  describe('as users of other libraries expect it', () => {
    let company: Company;
    let masters: readonly Master[];
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
      masters = company.contenders[0].masters;
    });
    beforeEach(() => void (name = `expected:${++count}`));
    afterAll(async () => {
      await Promise.all(company.contenders.map((contender) => contender.close()));
      await company.end();
    });

    const lost = async (lock: Lock): Promise<void> => {
      if (!lock.signal.aborted) await once(lock.signal, 'abort');
    };
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

    describe('An attempt', () => {
      it.each([0, 1, 2, 3, 4, 5, 6, 7])(
        'succeeds exactly if others hold a minority, and changes nothing of theirs: masters %i, bit by bit',
        async (mask) => {
          const key = `lock:${name}`;
          const foreign = masters.filter((_, i) => (mask >> i) % 2 === 1);
          for (const master of foreign) await ask(master, acquiring([key], `of ${master.name}`));
          const isFree = foreign.length < 2;
          const lock = await a.tryAcquire(name, isFree ? WAIT : {});
          expect(lock !== null).toBe(isFree);
          await lock?.release();
          expect(lock?.loss).toBeUndefined();
          const left = await Promise.all(masters.map((master) => ask(master, inspecting(key))));
          expect(left.map(({ kind }) => kind)).toEqual(masters.map((m) => (foreign.includes(m) ? 'held' : 'granted')));
          for (const master of foreign)
            expect(await ask(master, releasing([key], `of ${master.name}`))).toMatchObject({ kind: 'granted' });
        },
      );

      it('of many at once that do not wait, at most one succeeds, no other fails, and none leaves anything', async () => {
        const attempts = Array.from({ length: TURNS }, (_, i) => (i % 2 ? a : b).tryAcquire(name));
        const locks = (await Promise.all(attempts)).filter((lock) => lock !== null);
        expect(locks.length).toBeLessThanOrEqual(1);
        await locks[0]?.release();
        await expectFree();
      });

      it('with the smallest ttl is granted or refused in time, and leaves nothing', async () => {
        const codes = await Promise.all(
          Array.from({ length: TURNS }, () => codeOf(a.acquire(name, { ttl: 10, wait: 0 }))),
        );
        const known = ['no error', 'LOCK_NOT_ACQUIRED', 'QUORUM_UNAVAILABLE'];
        expect(codes.filter((code) => !known.includes(String(code)))).toEqual([]);
        await expectFree();
      });

      it('is refused by services with the same prefix only', async () => {
        const lock = await a.acquire(name, WAIT);
        const other = await elsewhere.tryAcquire(name, WAIT);
        expect([await b.tryAcquire(name), other?.isHeld]).toEqual([null, true]);
        await lock.release();
        expect([(await elsewhere.inspect(name)).state, (await b.inspect(name)).state]).toEqual(['held', 'free']);
        await other?.release();
      });
    });

    describe('A lock that expires', () => {
      it('is told to its holder before the next one has it, who is not affected by the late release', async () => {
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

      it('cannot be extended, and is not taken back', async () => {
        const lock = await a.acquire(name, { ...WAIT, ttl: SHORT });
        await lost(lock);
        expect(await codeOf(lock.extend('10s'))).toBe('LOCK_LOST');
        expect(lock.isHeld).toBe(false);
        await expectFree();
        await lock.release();
      });

      it('may be released in the listener that is told of it, once', async () => {
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

      it('makes work that went on without it fail, and leaves the lock of the next holder', async () => {
        let next: Lock | undefined;
        const work = a.withLock(name, { ...WAIT, ttl: SHORT, extend: false }, async () => {
          next = await b.acquire(name, WAIT);
        });
        expect(await codeOf(work)).toBe('LOCK_LOST');
        expect([next?.isHeld, await a.tryAcquire(name)]).toEqual([true, null]);
        await next?.release();
      });
    });

    describe('A lock that is released', () => {
      it('twice at once and once more, is released once: the next holder keeps it', async () => {
        const lock = await a.acquire(name, WAIT);
        const next = b.acquire(name, WAIT);
        await Promise.all([lock.release(), lock.release()]);
        const { isHeld } = await next;
        await lock.release();
        expect([isHeld, (await next).isHeld, await a.tryAcquire(name), lock.loss]).toEqual([
          ...[true, true, null, undefined],
        ]);
        await (await next).release();
      });

      it('cannot be extended, nor is it brought back by an extension that was under way', async () => {
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

      it('is not lost any more, whatever becomes of its keys', async () => {
        const lock = await a.acquire(name, { ...WAIT, extend: true, ttl: SHORT });
        await lock.release();
        await company.forget();
        const next = await b.acquire(name, { ...WAIT, ttl: SHORT });
        await lost(next);
        expect([lock.loss, lock.signal.aborted]).toEqual([undefined, false]);
      });

      it('is kept from others until minHold is over', async () => {
        await a.withLock(name, { ...WAIT, minHold: 3 * SHORT }, () => undefined);
        expect(await b.tryAcquire(name)).toBeNull();
        await expectFree();
      });
    });

    it('Work that exceeds maxHold is told so and fails, and the next one begins meanwhile', async () => {
      const work = a.withLock(name, { ...WAIT, ttl: SHORT, maxHold: 2 * SHORT }, async ({ signal }) => {
        await b.withLock(name, WAIT, () => expect(signal.aborted).toBe(true));
      });
      await expect(work).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'max-hold' });
    });

    it('A writer that waits keeps new readers out, and gets the lock after the last reader', async () => {
      const reading = { ...WAIT, mode: 'shared' } as const;
      const readers = [await a.acquire(name, reading), await b.acquire(name, reading)];
      expect([await a.tryAcquire(name), await b.tryAcquire(name)]).toEqual([null, null]);
      const writer = a.acquire(name, WAIT);
      await eventually(async () => {
        const late = await b.tryAcquire(name, { mode: 'shared' });
        await late?.release();
        return late === null;
      });
      await readers[0]!.release();
      expect([await b.tryAcquire(name), readers[1]!.isHeld]).toEqual([null, true]);
      await readers[1]!.release();
      const lock = await writer;
      expect(await b.tryAcquire(name, { mode: 'shared' })).toBeNull();
      await lock.release();
      const next = await b.acquire(name, reading);
      await next.release();
    });

    describe('Permits', () => {
      it('are all used by many calls of several processes, and never more of them', async () => {
        let inside = 0;
        const seen = new Set<number>();
        const use = (locks: LockService): Promise<void> =>
          locks.withLock(name, { ...WAIT, permits: 3 }, async () => {
            seen.add(++inside);
            await pause(20);
            inside--;
          });
        await Promise.all(Array.from({ length: 2 * TURNS }, (_, i) => use(i % 2 ? a : b)));
        expect([...seen].sort((x, y) => x - y)).toEqual([1, 2, 3]);
      });

      it('that expire are lost by their holder alone, and go to the next one', async () => {
        const kept = await a.acquire(name, { ...WAIT, permits: 2 });
        const late = await a.acquire(name, { ...WAIT, permits: 2, ttl: SHORT });
        const next = await b.acquire(name, { ...WAIT, permits: 2 });
        expect([next.slot, late.isHeld, kept.isHeld]).toEqual([late.slot, false, true]);
        await late.release();
        expect(await a.tryAcquire(name, { permits: 2 })).toBeNull();
        await Promise.all([kept.release(), next.release()]);
        expect([kept.loss, next.loss]).toEqual([undefined, undefined]);
      });

      it('become more while all are held: there is as much more as the number has grown', async () => {
        const held = [await a.acquire(name, { ...WAIT, permits: 2 }), await b.acquire(name, { ...WAIT, permits: 2 })];
        const more = [await a.acquire(name, { ...WAIT, permits: 4 }), await b.acquire(name, { ...WAIT, permits: 4 })];
        expect([...held, ...more].map(({ slot }) => slot).sort()).toEqual([0, 1, 2, 3]);
        expect([await a.tryAcquire(name, { permits: 4 }), await b.tryAcquire(name, { permits: 2 })]).toEqual([
          ...[null, null],
        ]);
        await Promise.all([...held, ...more].map((lock) => lock.release()));
      });

      it('become fewer while they are held: those that are there no more end with their holders', async () => {
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
  });
}
