import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Master, MasterReply } from '../../lib/core/master.interface.js';
import { acquiring, ask, extending, inspecting, picking, releasing, sharing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { Process } from '../support/waiting-process.js';

const GRANTED: MasterReply = { kind: 'granted' };
const GRANTED_AMONG_OTHERS: MasterReply = { kind: 'granted', hasWaiters: true };

/** What a master does for processes that wait for shared keys or permits. `masters` are connections to one server. */
export function sharedWaitingContract(
  kind: string,
  prepare: () => Promise<{ masters: readonly Master[]; end(): Promise<void> }>,
): void {
  describe(`waiting for shared keys and permits at ${kind}`, () => {
    let stage: Awaited<ReturnType<typeof prepare>>;
    let master: Master;
    let first: Process;
    let second: Process;
    let third: Process;
    let key: string;
    let slot: string;
    let count = 0;

    beforeAll(async () => {
      stage = await prepare();
      await Promise.all(stage.masters.map((each) => each.connect()));
      [master] = stage.masters as [Master];
      first = await new Process('first', stage.masters[1] as Master).listen();
      second = await new Process('second', stage.masters[2] as Master).listen();
      third = await new Process('third', stage.masters[3] as Master).listen();
    });
    afterAll(async () => {
      await Promise.all(stage.masters.map((each) => each.close()));
      await stage.end();
    });
    beforeEach(() => {
      key = `{shared waiting:${++count}}:a`;
      slot = `{shared waiting:${count}}:b`;
      for (const process of [first, second, third]) process.woken.length = 0;
    });

    it('wakes all shared waiters when the exclusive holder releases the key', async () => {
      await ask(master, acquiring([key], 'writer'));
      expect(await first.share([key], 20_000)).toMatchObject({ kind: 'held' });
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'held' });
      expect(await ask(master, releasing([key], 'writer'))).toEqual(GRANTED_AMONG_OTHERS);
      await eventually(() => first.woken.length > 0 && second.woken.length > 0);
      expect(await first.share([key], 20_000)).toMatchObject({ kind: 'granted' });
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'granted' });
      await first.unshare(key);
      await second.unshare(key);
      expect(await ask(master, inspecting(key))).toEqual(GRANTED);
    });

    // Protocol 11.7
    it('wakes the shared waiters that are older than the first exclusive one, and then that one', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.take([key], 20_000);
      await third.share([key], 10_000);
      await ask(master, releasing([key], 'writer'));
      await eventually(() => first.woken.length > 0);
      expect(await first.share([key], 30_000)).toMatchObject({ kind: 'granted' });
      expect([second.woken, third.woken]).toEqual([[], []]);
      expect(await first.unshare(key)).toEqual(GRANTED_AMONG_OTHERS);
      await eventually(() => second.woken.length > 0);
      expect(third.woken).toEqual([]);
      await second.leave(key);
      await eventually(() => third.woken.length > 0);
      await third.leaveShared(key);
    });

    it('goes on to wake shared waiters when one of them is granted without a notification', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 20_000);
      await second.share([key], 10_000);
      await ask(master, extending([key], 'writer', 1));
      await eventually(async () => (await first.share([key], 20_000)).kind === 'granted');
      await eventually(() => second.woken.length > 0);
      await second.leaveShared(key);
      await first.unshare(key);
    });

    it('keeps an exclusive waiter waiting while a shared holder remains', async () => {
      await ask(master, sharing([key], 'one'));
      await ask(master, sharing([key], 'two'));
      expect(await first.take([key])).toMatchObject({ kind: 'held', sharedBy: 2 });
      await ask(master, { ...releasing([key], 'one'), isShared: true });
      expect(first.woken).toEqual([]);
      await ask(master, { ...releasing([key], 'two'), isShared: true });
      await eventually(() => first.woken.length > 0);
      expect(await first.take([key])).toEqual(GRANTED);
      await first.give(key);
    });

    it('wakes shared waiters when an exclusive waiter before them leaves without a reservation', async () => {
      await ask(master, sharing([key], 'one'));
      await first.take([key], 20_000);
      await first.want([key], 20_000);
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'held' });
      await first.want([key], undefined);
      await first.leave(key);
      await eventually(() => second.woken.length > 0);
      expect(await second.share([key], 10_000)).toEqual(GRANTED);
      await second.unshare(key);
    });

    // Protocol 11.7
    it('defers a woken process while an older one stands at the barrier, and wakes no younger one', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 10_000);
      await second.want([key], 60_000);
      await ask(master, releasing([key], 'writer'));
      expect(await first.share([key], 10_000)).toMatchObject({ kind: 'held' });
      expect(first.woken).toEqual([]);
      await second.want([key], undefined);
      expect(await first.share([key], 10_000)).toEqual(GRANTED);
      await first.unshare(key);
    });

    it('wakes a process that waits for an exclusive key, when a shared request is deferred although the key is free', async () => {
      await second.want([key], 60_000);
      await ask(master, acquiring([key], 'writer'));
      await second.take([key], 60_000);
      await ask(master, extending([key], 'writer', 1));
      await eventually(async () => {
        await first.share([key], 10_000);
        return second.woken.length > 0;
      });
      await second.want([key], undefined);
      await second.leave(key);
      await first.leaveShared(key);
    });

    it('wakes an exclusive waiter that precedes the first shared one at the barrier and follows it in the queue', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 20_000);
      await second.take([key], 10_000);
      await second.want([key], 30_000);
      await ask(master, releasing([key], 'writer'));
      await eventually(() => second.woken.length > 0);
      expect(first.woken).toEqual([]);
      await second.want([key], undefined);
      expect(await second.take([key], 10_000)).toEqual(GRANTED_AMONG_OTHERS);
      await first.leaveShared(key);
      await second.give(key);
    });

    it('gives the key of a woken shared waiter to an exclusive one, if the former is deferred when it asks', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.take([key], 20_000);
      await second.want([key], 20_000);
      await ask(master, releasing([key], 'writer'));
      await eventually(() => first.woken.length > 0);
      // Its request was slow, so that it seems to have come later.
      expect(await first.share([key], 10_000)).toMatchObject({ kind: 'held' });
      await eventually(() => second.woken.length > 0);
      await second.want([key], undefined);
      expect(await second.take([key], 20_000)).toEqual(GRANTED_AMONG_OTHERS);
      await second.give(key);
      expect(await first.share([key], 10_000)).toEqual(GRANTED);
      await first.unshare(key);
    });

    // Protocol 11.7
    it('notifies the leading shared waiters of a key that is kept after its release, without reserving it', async () => {
      await ask(master, acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.share([key], 20_000);
      await third.take([key], 10_000);
      expect(await ask(master, releasing([key], 'writer', 5_000))).toEqual(GRANTED_AMONG_OTHERS);
      await eventually(() => first.woken.length > 0 && second.woken.length > 0);
      expect(third.woken).toEqual([]);
      const refusal = await first.share([key], 30_000);
      expect(refusal).toMatchObject({ kind: 'held' });
      expect((refusal as { remaining: number }).remaining).toBeLessThanOrEqual(5_000);
      await third.leave(key);
      await first.leaveShared(key);
      await second.leaveShared(key);
    });

    it('keeps an exclusive process out while the key is reserved for a shared one', async () => {
      await eventually(async () => {
        await ask(master, acquiring([key], 'writer'));
        await first.share([key]);
        await ask(master, releasing([key], 'writer'));
        const answer = await ask(master, acquiring([key], 'newcomer'));
        await ask(master, releasing([key], 'newcomer'));
        await first.leaveShared(key);
        return answer.kind === 'held' && answer.sharedBy === 0;
      });
      expect(await ask(master, inspecting(key))).toEqual(GRANTED);
    });

    it('passes over a shared waiter that does not listen', async () => {
      await ask(master, acquiring([key], 'writer'));
      const queue = { queues: [`queue:${key}`], waiter: 'deaf', waited: 60_000 };
      await ask(first.master, sharing([key], 'deaf', { waited: 60_000, queue }));
      await second.share([key]);
      await ask(master, releasing([key], 'writer'));
      await eventually(() => second.woken.length > 0);
      expect(await second.share([key])).toEqual(GRANTED);
      expect(await ask(master, inspecting(key))).toMatchObject({ sharedBy: 1, waiting: 0 });
      await second.unshare(key);
      expect(await ask(master, inspecting(key))).toEqual(GRANTED);
    });

    // Protocol 11.10
    it('picks the first free key, and gives the same one to the same token', async () => {
      expect(await ask(master, picking([key, slot], 'one'))).toEqual({ kind: 'granted', picked: 0 });
      expect(await ask(master, picking([key, slot], 'two'))).toEqual({ kind: 'granted', picked: 1 });
      expect(await ask(master, picking([slot, key], 'one'))).toEqual({ kind: 'granted', picked: 1 });
    });

    it('answers with the shortest remaining time and its holder when all keys are held', async () => {
      const since = 1_790_000_000_000;
      await ask(master, picking([key], 'one', { ttl: 50_000 }));
      await ask(master, picking([slot], `${'ab12'.repeat(7)}@${since.toString(36)}@web:1`, { ttl: 20_000 }));
      const refusal = await ask(master, picking([key, slot], 'three'));
      expect(refusal).toMatchObject({ kind: 'held', holder: { instance: 'web:1', since: new Date(since) } });
      expect((refusal as { remaining: number }).remaining).toBeLessThanOrEqual(20_000);
    });

    // Protocol 11.11
    it('reserves the released key for the oldest process that waits for any of them', async () => {
      await ask(master, picking([key], 'one'));
      await ask(master, picking([slot], 'two'));
      expect(await first.pick([key, slot], 10_000)).toMatchObject({ kind: 'held' });
      expect(await second.pick([key, slot], 20_000)).toMatchObject({ kind: 'held' });
      await ask(master, { ...releasing([slot], 'two'), queues: [`queue:${key}`] });
      await eventually(() => second.woken.length > 0);
      expect([first.woken, second.woken]).toEqual([[], [slot]]);
      expect(await second.pick([key, slot], 20_000)).toEqual({ kind: 'granted', picked: 1, hasWaiters: true });
      await first.leave(key);
    });

    it('offers the key that is reserved for a process that leaves to the next one that waits for any of them', async () => {
      await ask(master, picking([key], 'one'));
      await ask(master, picking([slot], 'two'));
      const queues = [`queue:${key}`, `queue:${key}`];
      await first.pick([key, slot], 20_000);
      await second.pick([key, slot], 10_000);
      await ask(master, { ...releasing([slot], 'two'), queues: queues.slice(0, 1) });
      await eventually(() => first.woken.length > 0);
      await ask(first.master, { op: 'leave', keys: [key, slot], queues, waiter: first.name });
      await eventually(() => second.woken.length > 0);
      expect([first.woken, second.woken]).toEqual([[slot], [slot]]);
      expect(await second.pick([key, slot], 10_000)).toEqual({ kind: 'granted', picked: 1 });
    });
  });
}
