import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { acquiring, inspecting, picking, releasing, sharing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import type { Process } from '../support/waiting-process.js';
import { GRANTED, GRANTED_AMONG_OTHERS, OnStage, type Stage } from './stage.js';

/** What a master does for processes that wait for shared keys or permits. Each has a master of its own. */
export function sharedWaitingContract(kind: string, prepare: () => Promise<Stage>): void {
  describe(`waiting for shared keys and permits at ${kind}`, () => {
    const stage = new OnStage(prepare);
    const { ask } = stage;
    let first: Process;
    let second: Process;
    let third: Process;
    let key: string;
    let slot: string;
    let count = 0;

    beforeAll(async () => {
      first = await stage.listening('first');
      second = await stage.listening('second');
      third = await stage.listening('third');
    });
    beforeEach(() => {
      key = `{shared waiting:${++count}}:a`;
      slot = `{shared waiting:${count}}:b`;
      for (const process of [first, second, third]) process.woken.length = 0;
    });

    it('wakes all shared waiters when the exclusive holder releases the key', async () => {
      await ask(acquiring([key], 'writer'));
      expect(await first.share([key], 20_000)).toMatchObject({ kind: 'held' });
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'held' });
      expect(await ask(releasing([key], 'writer'))).toEqual(GRANTED_AMONG_OTHERS);
      await Promise.all([first.wakes(), second.wakes()]);
      expect(await first.share([key], 20_000)).toMatchObject({ kind: 'granted' });
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'granted' });
      await first.unshare(key);
      await second.unshare(key);
      expect(await ask(inspecting(key))).toEqual(GRANTED);
    });

    // Protocol 11.7
    it('wakes the shared waiters that are older than the first exclusive one, and then that one', async () => {
      await ask(acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.take([key], 20_000);
      await third.share([key], 10_000);
      await ask(releasing([key], 'writer'));
      await first.wakes();
      expect(await first.share([key], 30_000)).toMatchObject({ kind: 'granted' });
      expect([second.woken, third.woken]).toEqual([[], []]);
      expect(await first.unshare(key)).toEqual(GRANTED_AMONG_OTHERS);
      await second.wakes();
      expect(third.woken).toEqual([]);
      await second.leave(key);
      await third.wakes();
    });

    it('goes on to wake shared waiters when one of them is granted without a notification', async () => {
      await ask(acquiring([key], 'writer', { ttl: 500 }));
      await first.share([key], 20_000);
      await second.share([key], 10_000);
      await eventually(async () => (await first.share([key], 20_000)).kind === 'granted');
      await second.wakes();
    });

    it('keeps an exclusive waiter waiting while a shared holder remains', async () => {
      await ask(sharing([key], 'one'), sharing([key], 'two'));
      expect(await first.take([key])).toMatchObject({ kind: 'held', sharedBy: 2 });
      await ask({ ...releasing([key], 'one'), isShared: true });
      expect(first.woken).toEqual([]);
      await ask({ ...releasing([key], 'two'), isShared: true });
      await first.wakes();
      expect(await first.take([key])).toEqual(GRANTED);
    });

    it('wakes shared waiters when an exclusive waiter before them leaves without a reservation', async () => {
      await ask(sharing([key], 'one'));
      await first.take([key], 20_000);
      await first.want([key], 20_000);
      expect(await second.share([key], 10_000)).toMatchObject({ kind: 'held' });
      await first.leave(key);
      await second.wakes();
      expect(await second.share([key], 10_000)).toEqual(GRANTED);
    });

    // Protocol 11.7
    it('defers a woken process while the writer key is older, and wakes none until its writer leaves', async () => {
      await ask(acquiring([key], 'writer'));
      await first.share([key], 10_000);
      await second.want([key], 60_000);
      await ask(releasing([key], 'writer'));
      expect(await first.share([key], 10_000)).toMatchObject({ kind: 'held' });
      expect(first.woken).toEqual([]);
      await second.leaveShared(key);
      expect(first.woken).toEqual([]);
      await second.leave(key);
      await first.wakes();
      expect(await first.share([key], 10_000)).toEqual(GRANTED);
    });

    it('wakes a process that waits for an exclusive key, when a shared request is deferred although the key is free', async () => {
      await second.want([key], 60_000);
      await ask(acquiring([key], 'writer', { ttl: 500 }));
      await second.take([key], 60_000);
      await eventually(async () => {
        await first.share([key], 10_000);
        return second.woken.length > 0;
      });
    });

    it('wakes an exclusive waiter that precedes the first shared one by its writer key and follows it in the queue', async () => {
      await ask(acquiring([key], 'writer'));
      await first.share([key], 20_000);
      await second.take([key], 10_000);
      await second.want([key], 30_000);
      await ask(releasing([key], 'writer'));
      await second.wakes();
      expect(first.woken).toEqual([]);
      expect(await second.take([key], 10_000)).toEqual(GRANTED_AMONG_OTHERS);
    });

    it('gives the key of a woken shared waiter to an exclusive one, if the former is deferred when it asks', async () => {
      await ask(acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.take([key], 20_000);
      await second.want([key], 20_000);
      await ask(releasing([key], 'writer'));
      await first.wakes();
      // Its request was slow, so that it seems to have come later.
      expect(await first.share([key], 10_000)).toMatchObject({ kind: 'held' });
      await second.wakes();
      expect(await second.take([key], 20_000)).toEqual(GRANTED_AMONG_OTHERS);
      await second.leave(key);
      await second.give(key);
      expect(await first.share([key], 10_000)).toEqual(GRANTED);
    });

    // Protocol 11.7
    it('notifies the leading shared waiters of a key that is kept after its release, without reserving it', async () => {
      await ask(acquiring([key], 'writer'));
      await first.share([key], 30_000);
      await second.share([key], 20_000);
      await third.take([key], 10_000);
      expect(await ask(releasing([key], 'writer', 5_000))).toEqual(GRANTED_AMONG_OTHERS);
      await Promise.all([first.wakes(), second.wakes()]);
      expect(third.woken).toEqual([]);
      const refusal = await first.share([key], 30_000);
      expect(refusal).toMatchObject({ kind: 'held' });
      expect((refusal as { remaining: number }).remaining).toBeLessThanOrEqual(5_000);
    });

    it('keeps an exclusive process out while the key is reserved for a shared one', async () => {
      await eventually(async () => {
        await ask(acquiring([key], 'writer'));
        await first.share([key]);
        await ask(releasing([key], 'writer'));
        const answer = await ask(acquiring([key], 'newcomer'));
        await ask(releasing([key], 'newcomer'));
        await first.leaveShared(key);
        return answer.kind === 'held' && answer.sharedBy === 0;
      });
      expect(await ask(inspecting(key))).toEqual(GRANTED);
    });

    it('passes over a shared waiter that does not listen', async () => {
      await ask(acquiring([key], 'writer'));
      const queue = { queues: [`queue:${key}`], waiter: 'deaf', waited: 60_000, reserveFor: 50 };
      await first.ask(sharing([key], 'deaf', { waited: 60_000, queue }));
      await second.share([key]);
      await ask(releasing([key], 'writer'));
      await second.wakes();
      expect(await second.share([key])).toEqual(GRANTED);
      expect(await ask(inspecting(key))).toMatchObject({ sharedBy: 1, waiting: 0 });
      await second.unshare(key);
      expect(await ask(inspecting(key))).toEqual(GRANTED);
    });

    // Protocol 11.10
    it('picks the first free key, and gives the same one to the same token', async () => {
      expect(await ask(picking([key, slot], 'one'))).toEqual({ kind: 'granted', picked: 0 });
      expect(await ask(picking([key, slot], 'two'))).toEqual({ kind: 'granted', picked: 1 });
      expect(await ask(picking([slot, key], 'one'))).toEqual({ kind: 'granted', picked: 1 });
    });

    it('answers with the shortest remaining time and its holder when all keys are held', async () => {
      const since = 1_790_000_000_000;
      await ask(picking([key], 'one', { ttl: 50_000 }));
      await ask(picking([slot], `${'ab12'.repeat(7)}@${since.toString(36)}@web:1`, { ttl: 20_000 }));
      const refusal = await ask(picking([key, slot], 'three'));
      expect(refusal).toMatchObject({ kind: 'held', holder: { instance: 'web:1', since: new Date(since) } });
      expect((refusal as { remaining: number }).remaining).toBeLessThanOrEqual(20_000);
    });

    // Protocol 11.11
    it('reserves the released key for the oldest process that waits for any of them', async () => {
      await ask(picking([key], 'one'), picking([slot], 'two'));
      expect(await first.pick([key, slot], 10_000)).toMatchObject({ kind: 'held' });
      expect(await second.pick([key, slot], 20_000)).toMatchObject({ kind: 'held' });
      await ask({ ...releasing([slot], 'two'), queues: [`queue:${key}`] });
      await second.wakes();
      expect([first.woken, second.woken]).toEqual([[], [slot]]);
      expect(await second.pick([key, slot], 20_000)).toEqual({ kind: 'granted', picked: 1, hasWaiters: true });
    });

    it('offers the key that is reserved for a process that leaves to the next one that waits for any of them', async () => {
      await ask(picking([key], 'one'), picking([slot], 'two'));
      const queues = [`queue:${key}`, `queue:${key}`];
      await first.pick([key, slot], 20_000);
      await second.pick([key, slot], 10_000);
      await ask({ ...releasing([slot], 'two'), queues: queues.slice(0, 1) });
      await first.wakes();
      await first.ask({ op: 'leave', keys: [key, slot], queues, waiter: first.name });
      await second.wakes();
      expect([first.woken, second.woken]).toEqual([[slot], [slot]]);
      expect(await second.pick([key, slot], 10_000)).toEqual({ kind: 'granted', picked: 1 });
    });
  });
}
