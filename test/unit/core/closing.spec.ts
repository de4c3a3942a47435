import { describe, expect, it } from '@jest/globals';
import { Rig } from '../support/rig.js';
import { type Behaviour, obeys, says, unreachable } from '../support/scripted-master.js';

/** Nothing arrives over a closed connection. */
const untilClosed: Behaviour = (request, reply, master) =>
  (master.closed ? says(unreachable) : obeys)(request, reply, master);

describe('Draining a process', () => {
  it('ends for every caller when the last lock is released', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const drains = [1_000, 2_000, 3_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    await rig.clock.advance(500);
    await lock.release();
    await rig.clock.settle();
    expect(drains.map(({ at }) => at)).toEqual([500, 500, 500]);
    expect(rig.losses).toEqual([]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends for every caller when the time of one of them is over', async () => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const drains = [3_000, 1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    await rig.clock.advance(5_000);
    // It takes the lock away, which leaves the others nothing to wait for.
    expect(drains.map(({ at }) => at)).toEqual([1_000, 1_000, 1_000]);
    expect(lock.loss).toMatchObject({ cause: 'shutdown' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends at once when the process is closed meanwhile', async () => {
    const rig = new Rig();
    await rig.lock('a');
    const waiting = rig.follow(rig.acquire('a'));
    const drains = [1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    const closes = [rig.redlock.close(), rig.redlock.close()].map((close) => rig.follow(close));
    await rig.clock.settle();
    expect(waiting.state).toBe('rejected');
    expect([...drains, ...closes].map(({ at }) => at)).toEqual([0, 0, 0, 0]);
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});

describe('Closing a process', () => {
  it('leaves no key on masters that hung by then, and answer later', async () => {
    const rig = new Rig();
    rig.scriptAll(untilClosed);
    await rig.lock('a');
    const hung = rig.masters.slice(1);
    for (const { memory } of hung) memory.pause();
    for (const resource of ['b', 'c', 'd', 'e']) rig.follow(rig.acquire(resource, { wait: 1_000 }));
    await rig.clock.advance(200);
    expect(rig.silences).toHaveLength(2);
    const closed = rig.follow(rig.redlock.close());
    await rig.clock.advance(100);
    expect(closed.state).toBe('fulfilled');
    for (const { memory } of hung) memory.resume();
    await rig.clock.settle();
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});
