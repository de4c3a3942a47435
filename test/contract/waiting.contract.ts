import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { HeldReply, MasterReply } from '../../lib/masters/master.interface.js';
import { acquiring, extending, inspecting, releasing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import type { Process } from '../support/waiting-process.js';
import { GRANTED, GRANTED_AMONG_OTHERS, OnStage, type Stage } from './stage.js';

/** What a master does for waiters. Each process has a master of its own. */
export function waitingContract(kind: string, prepare: () => Promise<Stage>): void {
  describe(`waiting at ${kind}`, () => {
    const stage = new OnStage(prepare);
    const { ask } = stage;
    let first: Process;
    let second: Process;
    let key: string;
    let other: string;
    let count = 0;

    beforeAll(async () => {
      first = await stage.listening('first');
      second = await stage.listening('second');
    });
    beforeEach(async () => {
      key = `{waiting:${++count}}:a`;
      other = `{waiting:${count}}:b`;
      first.woken.length = second.woken.length = 0;
      await ask(acquiring([key], 'holder'));
    });

    // Protocol 5.4
    it('wakes one waiter at each release of a key, in the order of their arrival', async () => {
      expect(await first.take([key])).toMatchObject({ kind: 'held' });
      expect(await second.take([key])).toMatchObject({ kind: 'held' });
      expect(await ask(releasing([key], 'holder'))).toEqual(GRANTED_AMONG_OTHERS);
      await first.wakes();
      expect(await first.take([key])).toEqual(GRANTED_AMONG_OTHERS);
      expect([first.woken, second.woken]).toEqual([[key], []]);
      await first.give(key);
      await second.wakes();
      expect(await second.take([key])).toEqual(GRANTED);
      expect([first.woken, second.woken]).toEqual([[key], [key]]);
    });

    it('reports how many processes wait in the queue of a held key', async () => {
      const inspection = (): Promise<MasterReply> => ask({ op: 'inspect', keys: [key], queues: [`queue:${key}`] });
      expect(await inspection()).toMatchObject({ kind: 'held', waiting: 0 });
      await first.take([key]);
      await second.take([key]);
      expect(await inspection()).toMatchObject({ kind: 'held', waiting: 2 });
      await second.leave(key);
      await first.leave(key);
      expect(await inspection()).toMatchObject({ kind: 'held', waiting: 0 });
    });

    // Protocol 5.3
    it('first wakes the process that has waited longest, wherever it waited', async () => {
      await first.take([key], 10);
      await second.take([key], 5_000);
      await ask(releasing([key], 'holder'));
      await second.wakes();
      expect(first.woken).toEqual([]);
    });

    // Protocol 5.3
    it('keeps the place of a process that asks again', async () => {
      await first.take([key], 100);
      await second.take([key], 50);
      await first.take([key]);
      await ask(releasing([key], 'holder'));
      await first.wakes();
    });

    // Protocol 5.4
    it('keeps the key for the woken process for a moment', async () => {
      await first.take([key]);
      // In one turn, because the moment is 50 ms.
      const [, newcomer] = await Promise.all([ask(releasing([key], 'holder')), ask(acquiring([key], 'newcomer'))]);
      expect(newcomer).toMatchObject({ kind: 'held' });
      expect(await first.take([key])).toMatchObject({ kind: 'granted' });
    });

    // Protocol 5.4
    it('keeps it for as long as the woken process has last said that it needs, and its place', async () => {
      await first.take([key], 100);
      await second.take([key], 50);
      await first.take([key], 0, 1_000);
      const [, newcomer] = await Promise.all([ask(releasing([key], 'holder')), ask(acquiring([key], 'newcomer'))]);
      const { remaining = 0 } = newcomer as HeldReply;
      // Both in one turn: a server that is busy may take half a second for them.
      expect(remaining).toBeGreaterThan(500);
      expect(remaining).toBeLessThanOrEqual(1_000);
      await first.wakes();
      expect(second.woken).toEqual([]);
    });

    it('gives the key to others when the woken process does not take it', async () => {
      await first.take([key]);
      await ask(releasing([key], 'holder'));
      await eventually(async () => (await ask(acquiring([key], 'newcomer'))).kind === 'granted');
    });

    // Protocol 5.4
    it('passes over a process that does not listen', async () => {
      const { queue, ...request } = first.taking([key], 60_000);
      await first.ask({ ...request, queue: { ...queue!, waiter: 'deaf' } });
      await second.take([key]);
      await ask(releasing([key], 'holder'));
      await second.wakes();
      expect(await second.take([key])).toEqual(GRANTED);
    });

    it('wakes the next process when the woken one leaves', async () => {
      await first.take([key]);
      await second.take([key]);
      await ask(releasing([key], 'holder'));
      await first.wakes();
      expect(second.woken).toEqual([]);
      await first.leave(key);
      await second.wakes();
      expect(await second.take([key])).toEqual(GRANTED);
    });

    it('forgets a process that leaves', async () => {
      await first.take([key]);
      await first.leave(key);
      expect(await ask(releasing([key], 'holder'))).toEqual(GRANTED);
      expect(await ask(inspecting(key))).toEqual(GRANTED);
      expect(first.woken).toEqual([]);
    });

    it('wakes no process when the key is released with a foreign token', async () => {
      await first.take([key]);
      await ask(releasing([key], 'stranger'), extending([key], 'holder'));
      expect(first.woken).toEqual([]);
      expect(await ask(inspecting(key))).toMatchObject({ kind: 'held' });
    });

    // Protocol 7.4
    it('lets a waiter look again when a released key is kept for longer', async () => {
      await first.take([key]);
      await ask(releasing([key], 'holder', 40_000));
      await first.wakes();
      expect(await first.take([key])).toMatchObject({ kind: 'held' });
    });

    it('takes several keys together, and does not keep one while another is held', async () => {
      await ask(acquiring([other], 'another holder'));
      await first.take([key, other]);
      await second.take([key]);
      await ask(releasing([key], 'holder'));
      await first.wakes();
      expect(await first.take([key, other])).toMatchObject({ kind: 'held' });
      await second.wakes();
      expect(await second.take([key])).toMatchObject({ kind: 'granted' });
      await second.give(key);
      await ask(releasing([other], 'another holder'));
      await first.wakes(2);
      expect(await first.take([key, other])).toEqual(GRANTED);
    });

    it('wakes no process that has stopped listening', async () => {
      const leaver = await stage.listening('leaver');
      await leaver.take([key]);
      leaver.master.listen(leaver.name, undefined);
      await second.take([key]);
      await eventually(async () => {
        await ask(acquiring([key], 'holder'));
        await second.take([key]);
        await ask(releasing([key], 'holder'));
        return second.woken.length > 0;
      });
      expect(leaver.woken).toEqual([]);
    });
  });
}
