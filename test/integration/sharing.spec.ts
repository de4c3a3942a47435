import { describe, expect, it } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const SHARED = { mode: 'shared', wait: '20s', extend: true } as const;
const EXCLUSIVE = { wait: '20s', extend: true } as const;

const masters = sharedMasters(3);

/** Lets several processes work under a lock, and returns the largest numbers of simultaneous holders of each kind. */
class Crowd {
  readers = 0;
  writers = 0;
  mostReaders = 0;
  mostWriters = 0;
  mixed = 0;

  enter(kind: 'readers' | 'writers'): void {
    this[kind]++;
    this.mostReaders = Math.max(this.mostReaders, this.readers);
    this.mostWriters = Math.max(this.mostWriters, this.writers);
    if (this.readers > 0 && this.writers > 0) this.mixed++;
  }

  leave(kind: 'readers' | 'writers'): void {
    this[kind]--;
  }
}

describe('Shared locks on servers', () => {
  it('exclude exclusive ones and are held together, by many processes', async () => {
    await using one = await Contender.on(masters.urls);
    await using two = await Contender.on(masters.urls);
    await using three = await Contender.on(masters.urls);
    const crowd = new Crowd();
    const work = async (contender: Contender, kind: 'readers' | 'writers'): Promise<void> => {
      for (let turn = 0; turn < 10; turn++) {
        const lock = await contender.acquire('prices', '5s', kind === 'readers' ? SHARED : EXCLUSIVE);
        crowd.enter(kind);
        await new Promise((resolve) => setImmediate(resolve));
        crowd.leave(kind);
        await lock.release();
      }
    };
    await Promise.all(
      [one, two, three].flatMap((contender) => [
        ...Array.from({ length: 6 }, () => work(contender, 'readers')),
        ...Array.from({ length: 2 }, () => work(contender, 'writers')),
      ]),
    );
    expect(crowd).toMatchObject({ mostWriters: 1, mixed: 0, readers: 0, writers: 0 });
    expect(crowd.mostReaders).toBeGreaterThan(1);
    expect(await one.redlock.inspector.inspect('prices')).toMatchObject({ state: 'free', waiting: 0 });
  });

  // Protocol 11.6
  it('let an exclusive request pass that came before them', async () => {
    await using reader = await Contender.on(masters.urls);
    await using writer = await Contender.on(masters.urls);
    const first = await reader.acquire('prices', '5s', SHARED);
    const order: string[] = [];
    const writing = writer.acquire('prices', '5s', EXCLUSIVE).then((lock) => {
      order.push('writer');
      return lock.release();
    });
    await eventually(async () => (await reader.redlock.inspector.inspect('prices')).waiting === 1);
    expect(await reader.redlock.inspector.inspect('prices')).toMatchObject({ state: 'held', sharedBy: 1 });
    const reading = reader.acquire('prices', '5s', SHARED).then((lock) => {
      order.push('reader');
      return lock.release();
    });
    await first.release();
    await Promise.all([writing, reading]);
    expect(order).toEqual(['writer', 'reader']);
  });
});

describe('Permits on servers', () => {
  it('are held by as many as there are, by many processes', async () => {
    await using one = await Contender.on(masters.urls);
    await using two = await Contender.on(masters.urls);
    const crowd = new Crowd();
    const taken = new Set<number | undefined>();
    const work = async (contender: Contender): Promise<void> => {
      for (let turn = 0; turn < 10; turn++) {
        const lock = await contender.acquire('stripe', '5s', { permits: 3, wait: '20s', extend: true });
        crowd.enter('readers');
        expect(taken.has(lock.slot)).toBe(false);
        taken.add(lock.slot);
        await new Promise((resolve) => setImmediate(resolve));
        taken.delete(lock.slot);
        crowd.leave('readers');
        await lock.release();
      }
    };
    await Promise.all([one, two].flatMap((contender) => Array.from({ length: 8 }, () => work(contender))));
    expect(crowd.mostReaders).toBe(3);
    expect(await one.redlock.inspector.inspectPermits('stripe', 3)).toMatchObject({ taken: 0, waiting: 0 });
  });
});
