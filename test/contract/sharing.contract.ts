import { beforeEach, describe, expect, it } from '@jest/globals';
import type { HeldReply } from '../../lib/masters/master.interface.js';
import { acquiring, drawing, extending, inspecting, releasing, sharing, writerKeysOf } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { expectHeldFor, GONE, GRANTED, OnStage, type Stage } from './stage.js';

const MOST = 1_000;

/** What a master does with keys that several holders share. */
export function sharingContract(kind: string, prepare: () => Promise<Stage>): void {
  describe(`shared keys of ${kind}`, () => {
    const { ask } = new OnStage(prepare);
    let key: string;
    let other: string;
    let count = 0;

    const share = (token: string, options: { readonly ttl?: number; readonly waited?: number } = {}) =>
      ask(sharing([key], token, options));
    const prolong = (token: string, ttl = 60_000) => ask({ ...extending([key], token, ttl), isShared: true });
    const heal = (token: string) => ask({ ...extending([key], token, 60_000), isShared: true, heals: true });
    const unshare = (token: string) => ask({ ...releasing([key], token), isShared: true });
    const take = (token: string) => ask(acquiring([key], token));
    const want = (waiter: string, waited: number) =>
      ask({ op: 'defer-readers', keys: [key], writerKeys: writerKeysOf([key]), waiter, waited });
    const leave = (waiter: string) => ask({ op: 'leave', keys: [key], queues: [`queue:${key}`], waiter });

    beforeEach(() => {
      key = `{sharing:${++count}}:a`;
      other = `{sharing:${count}}:b`;
    });

    describe('acquire', () => {
      // Protocol 11.1
      it('refuses an exclusive holder while a shared one has the key, and says how many there are', async () => {
        await share('one', { ttl: 20_000 });
        await share('two', { ttl: 40_000 });
        const refusal = await take('writer');
        expect(refusal).toMatchObject({ sharedBy: 2 });
        expectHeldFor(refusal, 30_000, 40_001);
      });

      // Protocol 11.2
      it('refuses a shared holder while an exclusive one has the key', async () => {
        await take('writer');
        const refusal = await share('one');
        expect(refusal).not.toHaveProperty('sharedBy');
        expectHeldFor(refusal, 30_000, 60_000);
        await ask(releasing([key], 'writer'));
        expect(await share('one')).toEqual(GRANTED);
      });

      it('grants the same token again as one holder', async () => {
        await share('one', { ttl: 20_000 });
        expect(await share('one', { ttl: 50_000 })).toEqual(GRANTED);
        const answer = await ask(inspecting(key));
        expect(answer).toMatchObject({ sharedBy: 1 });
        expectHeldFor(answer, 30_000, 50_001);
      });

      it('takes all of several keys, or none', async () => {
        await ask(acquiring([other], 'writer'));
        expect(await ask(sharing([key, other], 'one'))).toMatchObject({ kind: 'held' });
        expect(await ask(inspecting(key))).toEqual(GRANTED);
        await ask(releasing([other], 'writer'));
        expect(await ask(sharing([key, other], 'one'))).toEqual(GRANTED);
        expect(await ask(inspecting(other))).toMatchObject({ sharedBy: 1 });
      });

      it('lets a holder go when its own time is over, however long the others stay', async () => {
        await share('long');
        await share('short', { ttl: 20 });
        await eventually(async () => ((await ask(inspecting(key))) as HeldReply).sharedBy === 1);
        await unshare('long');
        expect(await take('writer')).toEqual(GRANTED);
      });

      // Protocol 11.2
      it('refuses a shared holder beyond the limit, but not one that has a place already', async () => {
        for (let i = 0; i < MOST; i++) await share(`holder ${i}`);
        expect(await share('late')).toMatchObject({ kind: 'held', sharedBy: MOST });
        expect(await share('holder 7')).toEqual(GRANTED);
        await unshare('holder 7');
        expect(await share('late')).toEqual(GRANTED);
      });

      it('takes any string as a token and as a key', async () => {
        key = `${key} {a}\r\n锁`;
        const token = 'reserved for a\r\n b';
        expect(await share(token)).toEqual(GRANTED);
        expect(await prolong(token)).toEqual(GRANTED);
        expect(await take('writer')).toMatchObject({ sharedBy: 1 });
        expect(await unshare(token)).toEqual(GRANTED);
        expect(await take('writer')).toEqual(GRANTED);
      });
    });

    describe('extend', () => {
      // Protocol 11.3
      it('never moves the end of a holder back, nor does the same request for the key', async () => {
        await share('one', { ttl: 50_000 });
        expect(await prolong('one', 10_000.5)).toEqual(GRANTED);
        await share('one', { ttl: 10_000 });
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_001);
      });

      // Protocol 11.3
      it('says that a holder is absent, and puts it back if it is to heal the key', async () => {
        expect([await prolong('one'), await heal('one'), await prolong('two')]).toEqual([GONE, GRANTED, GONE]);
        expect([await heal('two'), await prolong('one')]).toEqual([GRANTED, GRANTED]);
        expect(await take('writer')).toMatchObject({ sharedBy: 2 });
      });

      it('refuses while an exclusive holder has the key', async () => {
        await take('writer');
        expect([await prolong('one'), await heal('one')]).toMatchObject([{ kind: 'held' }, { kind: 'held' }]);
        expect(await ask(extending([key], 'writer'))).toEqual(GRANTED);
      });

      // Protocol 11.3
      it('refuses an exclusive token while shared holders have the key', async () => {
        await share('one');
        expect(await ask(extending([key], 'writer'))).toMatchObject({ kind: 'held', sharedBy: 1 });
        expect(await ask(drawing([key], 'one'))).toMatchObject({ kind: 'held' });
      });

      it('does not depend on the writer key', async () => {
        await share('one');
        await want('writer', 60_000);
        expect([await prolong('one'), await heal('lost')]).toEqual([GRANTED, GRANTED]);
      });
    });

    describe('release', () => {
      // Protocol 11.4
      it('removes one holder and leaves the others', async () => {
        await share('one');
        await share('two');
        expect([await unshare('one'), await unshare('one')]).toEqual([GRANTED, GONE]);
        expect(await take('writer')).toMatchObject({ sharedBy: 1 });
        await unshare('two');
        expect(await take('writer')).toEqual(GRANTED);
      });

      it('does not touch an exclusive holder', async () => {
        await take('writer');
        expect(await unshare('writer')).toMatchObject({ kind: 'held' });
        expect(await ask(extending([key], 'writer'))).toEqual(GRANTED);
      });

      it('of an exclusive token does not touch shared holders', async () => {
        await share('one');
        for (const request of [releasing([key], 'one'), releasing([key, other], 'one', 5_000)])
          expect(await ask(request)).toMatchObject({ kind: 'held', sharedBy: 1 });
        expect(await take('writer')).toMatchObject({ sharedBy: 1 });
      });
    });

    // Protocol 11.6
    describe('a writer key', () => {
      it('defers shared requests that are not older, and reports for how long at most', async () => {
        expect(await want('writer', 1_000)).toEqual(GRANTED);
        expectHeldFor(await share('young'), 0, 5_000);
        expect(await share('old', { waited: 60_000 })).toEqual(GRANTED);
      });

      it('does not defer a holder that asks again', async () => {
        await share('one');
        await want('writer', 1_000);
        expect(await share('one')).toEqual(GRANTED);
        expect(await share('two')).toMatchObject({ kind: 'held', sharedBy: 1 });
      });

      it('does not defer requests for an exclusive key', async () => {
        await want('writer', 1_000);
        expect(await take('another writer')).toEqual(GRANTED);
      });

      it('belongs to the first writer, and no other replaces or removes it', async () => {
        await want('writer', 10_000);
        expect(await want('another', 60_000)).toEqual(GRANTED);
        expect(await share('old', { waited: 30_000 })).toEqual(GRANTED);
        expect(await leave('another')).toEqual(GRANTED);
        expect(await share('young')).toMatchObject({ kind: 'held' });
      });

      it('keeps the first arrival of its writer', async () => {
        await want('writer', 60_000);
        await want('writer', 10_000);
        expect(await share('one', { waited: 30_000 })).toMatchObject({ kind: 'held' });
      });

      it('ends when its writer waits no more, and is then free for the next one', async () => {
        await want('writer', 1_000);
        expect(await leave('writer')).toEqual(GRANTED);
        expect(await share('one')).toEqual(GRANTED);
        expect(await leave('writer')).toEqual(GRANTED);
        await want('another', 1_000);
        expect(await share('two')).toMatchObject({ kind: 'held' });
        await leave('another');
        expect(await share('two')).toEqual(GRANTED);
      });
    });
  });
}
