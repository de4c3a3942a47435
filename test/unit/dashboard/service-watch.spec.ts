import { describe, expect, it } from '@jest/globals';
import { ManualClock, MemoryMaster, memoryLockService } from 'nestjs-redlock/testing';
import { EventLog } from '../../../lib/dashboard/event-log.js';
import { ServiceWatch } from '../../../lib/dashboard/service-watch.js';
import { SystemClock } from '../../../lib/runtime/system-clock.js';

class CountingMaster extends MemoryMaster {
  readonly asked: string[] = [];

  override ask(...[request, reply]: Parameters<MemoryMaster['ask']>): void {
    this.asked.push(request.op);
    super.ask(request, reply);
  }
}

function watching() {
  const master = new CountingMaster(new SystemClock());
  const locks = memoryLockService({ masters: [master] });
  const events = new EventLog();
  const watch = new ServiceWatch(null, locks, events);
  watch.begin();
  return { master, locks, events, watch };
}

describe('ServiceWatch', () => {
  it('asks the masters at most once a second, however many pages want to know', async () => {
    const { master, watch } = watching();
    expect(master.asked).toEqual([]);
    await Promise.all([watch.status(0), watch.status(0), watch.status(999)]);
    expect(master.asked).toEqual(['probe']);
    expect(await watch.status(1_000)).toMatchObject({ canVote: true });
    expect(master.asked).toEqual(['probe', 'probe']);
  });

  it('knows what is held and waited for, and forgets what has ended in any way', async () => {
    const { locks, watch } = watching();
    const lock = await locks.acquire(['b', 'a'], '10s');
    const waiting = locks.acquire('a', { ttl: '10s', wait: '1m' });
    expect(watch.own.held).toMatchObject({ count: 1, locks: [{ resources: ['b', 'a'] }] });
    expect(watch.own.waiting).toMatchObject({ count: 1, locks: [{ resources: ['a'] }] });
    expect(await locks.tryAcquire('a', '10s')).toBeNull();
    expect([watch.own.held.count, watch.own.waiting.count]).toEqual([1, 1]);
    await lock.release();
    await (await waiting).release();
    expect(watch.own).toEqual({ held: { count: 0, locks: [] }, waiting: { count: 0, locks: [] } });
  });

  it('knows what was held and waited for before the watch began', async () => {
    const clock = new ManualClock(1_000);
    const locks = memoryLockService({ clock });
    const lock = await locks.acquire('a', '10s');
    await clock.advance(500);
    const waiting = locks.acquire('a', { ttl: '10s', wait: '1m' });
    const watch = new ServiceWatch(null, locks, new EventLog());
    watch.begin();
    expect(watch.own).toEqual({
      held: { count: 1, locks: [{ resources: ['a'], since: 1_000 }] },
      waiting: { count: 1, locks: [{ resources: ['a'], since: 1_500 }] },
    });
    await lock.release();
    const later = await waiting;
    expect(watch.own).toMatchObject({ held: { count: 1 }, waiting: { count: 0 } });
    await later.release();
    expect(watch.own).toMatchObject({ held: { count: 0 }, waiting: { count: 0 } });
  });

  it('lists a hundred locks and counts the others', async () => {
    const { locks, watch } = watching();
    const held = await Promise.all(Array.from({ length: 101 }, (_, i) => locks.acquire(`r${i}`, '10s')));
    expect([watch.own.held.count, watch.own.held.locks.length]).toEqual([101, 100]);
    await Promise.all(held.map((lock) => lock.release()));
    expect(watch.own.held.count).toBe(0);
  });
});

describe('EventLog', () => {
  it('keeps the latest two hundred events, and gives those after a number', () => {
    const { events } = watching();
    for (let i = 0; i < 250; i++) events.add(null, 'good', `event ${i}`);
    const all = events.after(0);
    expect([all.length, all[0]!.text]).toEqual([200, 'event 50']);
    expect(events.after(248).map(({ text }) => text)).toEqual(['event 248', 'event 249']);
  });
});
