import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { REVOKED, signatureOf } from '../../lib/redlock/holder.js';
import type { MasterReply, DrawRequest, GrantedReply, Master } from '../../lib/masters/master.interface.js';
import { acquiring, ask as askMaster, drawing, extending, inspecting, releasing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { expectHeldFor, GONE, GRANTED, LARGE, OnStage, type Stage } from './stage.js';

/** A server that a test can make fail, and the masters that speak to it. */
export interface MasterStage extends Stage {
  /** Stops answering; requests wait until `resume`. */
  pause(): void;
  resume(): void;
  takeDown(): Promise<void>;
  bringUp(): Promise<void>;
}

/** What the algorithm requires of every implementation of a master. */
export function masterContract(kind: string, prepare: () => Promise<MasterStage>): void {
  describe(`${kind} as a master`, () => {
    const on = new OnStage(prepare);
    const { ask, expectEach } = on;
    let key: string;
    let other: string;
    let count = 0;

    beforeEach(() => {
      key = `{contract:${++count}}:a`;
      other = `{contract:${count}}:b`;
    });

    it('has a name and no problem once it is connected', () => {
      expect(on.master.problem()).toBeUndefined();
      expect(on.master.name).not.toBe('');
    });

    describe('acquire', () => {
      it('reports how long the key stays held', async () => {
        await ask(acquiring([key], 'mine', { ttl: 40_000 }));
        expectHeldFor(await ask(acquiring([key], 'yours')), 20_000, 40_000);
      });

      it('names the holder that its token names', async () => {
        const since = 1_790_000_000_000;
        await ask(acquiring([key], `${'ab12'.repeat(7)}${signatureOf('web-1@host:7', since)}`));
        const holder = { instance: 'web-1@host:7', since: new Date(since) };
        expect(await ask(acquiring([key], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(acquiring([key, other], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(extending([key], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(inspecting(key))).toMatchObject({ kind: 'held', holder });
        await ask(acquiring([other], REVOKED));
        expect(await ask(acquiring([key, other], 'x'))).not.toHaveProperty('revoked');
        expect(await ask(acquiring([other], 'x'))).toMatchObject({ kind: 'held', revoked: true });
        await ask(releasing([other], REVOKED), acquiring([other], 'another program'));
        expect(await ask(inspecting(other))).not.toHaveProperty('holder');
      });

      // Protocol 4.2
      it('takes none of several keys when one of them is held, and reports the longest remaining time', async () => {
        const free = `${key}:free`;
        await ask(acquiring([key], 'one', { ttl: 100_000 }), acquiring([other], 'two', { ttl: 50_000 }));
        expectHeldFor(await ask(acquiring([key, free, other].sort(), 'mine')), 80_000, 100_000);
        expect(await ask(inspecting(free))).toEqual(GRANTED);
      });

      // Protocol 6.2
      it('never shortens the life of a key if the same token is granted again', async () => {
        await ask(acquiring([key], 'mine', { ttl: 50_000 }));
        expect(await ask(acquiring([key], 'mine', { ttl: 10_000 }))).toEqual(GRANTED);
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
      });

      it('takes a key for the ttl and no longer', async () => {
        await ask(acquiring([key], 'mine', { ttl: 30 }));
        await eventually(async () => (await ask(acquiring([key], 'yours'))).kind === 'granted');
      });

      it.each(['a key with spaces', 'schlüssel:锁:🔒', 'two\r\nlines', '{a}{b}', 'x'.repeat(10_000)])(
        'takes any string as a key',
        async (name) => {
          const keys = [`${key}${name}`];
          expect(await ask(acquiring(keys, 'mine'))).toEqual(GRANTED);
          expect(await ask(acquiring(keys, 'yours'))).toMatchObject({ kind: 'held' });
          await expectEach(GRANTED, releasing(keys, 'mine'), inspecting(...keys));
        },
      );

      it('accepts fractions of a millisecond', async () => {
        expect(await ask(acquiring([key], 'mine', { ttl: 1000.5 }))).toEqual(GRANTED);
        await expectEach(GRANTED, extending([key], 'mine', 1000.5), releasing([key], 'mine', 0.5));
      });
    });

    describe('extend', () => {
      it('renews the life of keys that hold the token', async () => {
        await ask(acquiring([key, other], 'mine', { ttl: 10_000 }));
        expect(await ask(extending([key, other], 'mine', 50_000))).toEqual(GRANTED);
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
        expectHeldFor(await ask(inspecting(other)), 30_000, 50_000);
      });

      // Protocol 6.2
      it('never shortens the life of a key', async () => {
        await ask(acquiring([key], 'mine', { ttl: 50_000 }));
        expect(await ask(extending([key], 'mine', 10_000))).toEqual(GRANTED);
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
      });

      // Protocol 6.2
      it('says that a key is absent, refreshes the others, and sets nothing', async () => {
        await ask(acquiring([key], 'mine', { ttl: 10_000 }));
        expect(await ask(extending([key, other], 'mine', 50_000))).toEqual(GONE);
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
        expect(await ask(inspecting(other))).toEqual(GRANTED);
        expect(await ask(extending([other], 'mine'))).toEqual(GONE);
      });

      // Protocol 6.2
      it('sets absent keys again if it is to heal them', async () => {
        await ask(acquiring([key], 'mine', { ttl: 10_000 }));
        expect(await ask({ ...extending([key, other], 'mine', 50_000), heals: true })).toEqual(GRANTED);
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
        expectHeldFor(await ask(inspecting(other)), 30_000, 50_000);
        await ask(releasing([key, other], 'mine'));
        expect(await ask(inspecting(key, other))).toEqual(GRANTED);
      });

      // Protocol 6.2
      it('refuses when another token holds a key, reports for how long, and changes no key', async () => {
        const absent = `${key}:absent`;
        await ask(acquiring([key], 'mine', { ttl: 10_000 }), acquiring([other], 'yours', { ttl: 50_000 }));
        for (const heals of [false, true]) {
          expectHeldFor(await ask({ ...extending([absent, key, other].sort(), 'mine'), heals }), 30_000, 50_000);
        }
        expectHeldFor(await ask(inspecting(key)), 0, 10_000);
        expect(await ask(inspecting(absent))).toEqual(GRANTED);
      });
    });

    // Protocol 9.1
    describe('draw', () => {
      it('counts up from its previous number, for one holder after another', async () => {
        const fences: number[] = [];
        for (const token of ['one', 'two', 'three']) {
          await ask(acquiring([key], token));
          // The first number is beyond the clock, which is a floor, too.
          fences.push(await draw([key], token, fences.length === 0 ? { atLeast: LARGE } : {}));
          await ask(releasing([key], token));
        }
        const [first = NaN] = fences;
        expect(fences).toEqual([first, first + 1, first + 2]);
      });

      it('draws no number below the floor, however large the floor is', async () => {
        await ask(acquiring([key], 'mine'));
        expect(await draw([key], 'mine', { atLeast: LARGE })).toBe(LARGE);
        expect(await draw([key], 'mine', { atLeast: 1 })).toBe(LARGE + 1);
      });

      it('only repeats or adopts a number if it is not the first draw', async () => {
        await ask(acquiring([key], 'mine'));
        const drawn = await draw([key], 'mine');
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn })).toBe(drawn);
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn + 5 })).toBe(drawn + 5);
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn })).toBe(drawn + 5);
      });

      it('draws one number for several keys, larger than each of their counters, and writes it to all of them', async () => {
        await ask(acquiring([key, other], 'mine'));
        const ahead = await draw([other], 'mine', { atLeast: LARGE });
        const both = await draw([key, other], 'mine');
        expect(both).toBe(ahead + 1);
        expect(await draw([key], 'mine')).toBe(both + 1);
        expect(await draw([other], 'mine')).toBeGreaterThan(both);
      });

      it.each([true, false])(
        'refuses and changes nothing unless every key holds the token (first: %s)',
        async (isFirst) => {
          await ask(acquiring([key], 'mine'));
          const drawn = await draw([key], 'mine', { atLeast: LARGE });
          for (const keys of [[key, other], [other]]) {
            expect(await ask(drawing(keys, 'mine', { isFirst, atLeast: LARGE + 9 }))).toMatchObject({
              kind: 'held',
            });
          }
          expect(await ask(drawing([key], 'yours', { isFirst, atLeast: LARGE + 9 }))).toMatchObject({
            kind: 'held',
          });
          expect(await draw([key], 'mine')).toBe(drawn + 1);
        },
      );

      it('neither extends the life of a key nor sets an absent key', async () => {
        await ask(acquiring([key], 'mine', { ttl: 10_000 }));
        await draw([key], 'mine');
        expectHeldFor(await ask(inspecting(key)), 0, 10_000);
        await ask(drawing([key, other].sort(), 'mine'));
        expect(await ask(inspecting(other))).toEqual(GRANTED);
      });

      // Protocol 9.5
      it('leaves the counters alone when a key is set again', async () => {
        await ask(acquiring([key], 'mine'));
        const mine = await draw([key], 'mine', { atLeast: LARGE });
        await ask(releasing([key], 'mine'), acquiring([key], 'yours'));
        const yours = await draw([key], 'yours');
        await ask(releasing([key], 'yours'));
        expect(await ask({ ...extending([key], 'mine'), heals: true })).toEqual(GRANTED);
        expect([mine, await draw([key], 'mine')]).toEqual([yours - 1, yours + 1]);
      });

      async function draw(keys: string[], token: string, options: Partial<DrawRequest> = {}): Promise<number> {
        const { fence = NaN } = (await ask(drawing(keys, token, options))) as GrantedReply;
        return fence;
      }
    });

    describe('release', () => {
      it('deletes the keys that hold the token', async () => {
        await ask(acquiring([key, other], 'mine'));
        await expectEach(GRANTED, releasing([key, other], 'mine'), inspecting(key, other));
      });

      it('leaves the keys of other tokens alone', async () => {
        await ask(acquiring([key], 'mine'), acquiring([other], 'yours'));
        expectHeldFor(await ask(releasing([key, other], 'mine')), 0, 60_000);
        expect(await ask(inspecting(key))).toEqual(GRANTED);
        expect(await ask(inspecting(other))).toMatchObject({ kind: 'held' });
      });

      // Protocol 7.2
      it('says that a key is absent, and releases the others', async () => {
        await ask(acquiring([key], 'mine'));
        await expectEach(
          GONE,
          releasing([key, other], 'mine'),
          releasing([key], 'mine'),
          releasing([key], 'mine', 5_000),
        );
        expect(await ask(inspecting(key, other))).toEqual(GRANTED);
      });

      it('keeps the keys for the requested time', async () => {
        await ask(acquiring([key], 'mine', { ttl: 50_000 }));
        expect(await ask(releasing([key], 'mine', 10_000))).toEqual(GRANTED);
        expectHeldFor(await ask(inspecting(key)), 0, 10_000);
        await ask(releasing([key], 'mine', 30));
        await eventually(async () => (await ask(inspecting(key))).kind === 'granted');
      });

      it('does not keep a key that another token holds', async () => {
        await ask(acquiring([key], 'yours', { ttl: 50_000 }), releasing([key], 'mine', 100));
        expectHeldFor(await ask(inspecting(key)), 30_000, 50_000);
      });
    });

    it('probe is granted by a master that accepts writes, and leaves no key', async () => {
      expect(await ask({ op: 'probe', keys: ['probed'] })).toMatchObject({ kind: 'granted' });
      expect(await ask(inspecting('probed'))).toEqual({ kind: 'granted' });
    });

    it('inspect reports the longest time for which a key is held', async () => {
      expect(await ask(inspecting(key, other))).toEqual(GRANTED);
      await ask(acquiring([key], 'mine', { ttl: 10_000 }), acquiring([other], 'yours', { ttl: 50_000 }));
      expectHeldFor(await ask(inspecting(key, other)), 30_000, 50_000);
    });

    it('executes requests in the order in which they were sent', async () => {
      const answers = await Promise.all([
        ask(acquiring([key], 'one')),
        ask(releasing([key], 'one')),
        ask(acquiring([key], 'two')),
        ask(extending([key], 'one')),
        ask(releasing([key], 'two')),
        ask(extending([key], 'three')),
        ask(releasing([key], 'three')),
        ask(inspecting(key)),
      ]);
      expect(answers.map(({ kind }) => kind)).toEqual([
        ...['granted', 'granted', 'granted', 'held', 'granted', 'gone', 'gone', 'granted'],
      ]);
    });

    it('answers the requests that it received during a hang, late and in order', async () => {
      on.stage.pause();
      const kinds: string[] = [];
      const answers = [acquiring([key], 'mine'), releasing([key], 'mine'), inspecting(key)].map(async (request) => {
        kinds.push(`${request.op} ${(await ask(request)).kind}`);
      });
      expect(on.master.problem()).toBeUndefined();
      on.stage.resume();
      await Promise.all(answers);
      expect(kinds).toEqual(['acquire granted', 'release granted', 'inspect granted']);
    });

    describe('that is down', () => {
      beforeAll(async () => {
        await on.stage.takeDown();
        await eventually(() => on.master.problem() !== undefined);
      });
      afterAll(async () => {
        await on.stage.bringUp();
        await eventually(() => on.master.problem() === undefined);
      });

      it('reports the problem and its reason', () =>
        expect(on.master.problem()).toEqual({ kind: 'unreachable', reason: expect.stringMatching(/./), sent: false }));

      it.each([
        acquiring(['k'], 't'),
        extending(['k'], 't'),
        drawing(['k'], 't'),
        releasing(['k'], 't'),
        inspecting('k'),
      ])('answers $op at once without sending it', (request) => {
        const answers: MasterReply[] = [];
        on.master.ask(request, (answer) => answers.push(answer));
        expect(answers).toMatchObject([{ kind: 'unreachable', sent: false }]);
      });

      it('settles the first connection attempt of another master, and serves both once the server is up', async () => {
        const late = on.stage.master();
        const ready = jest.fn();
        late.onReady(ready);
        await late.connect();
        expect(late.problem()).toMatchObject({ kind: 'unreachable' });
        expect(ready).not.toHaveBeenCalled();

        await on.stage.bringUp();
        await eventually(() => late.problem() === undefined && on.master.problem() === undefined);
        expect(ready).toHaveBeenCalled();
        expect(await askMaster(late, acquiring([key], 'mine'))).toEqual(GRANTED);
        expect(await ask(releasing([key], 'mine'))).toEqual(GRANTED);
        expect(await askMaster(late, inspecting(key))).toEqual(GRANTED);
        await late.close();
      });
    });
  });
}

/** Behaviour at the end of a connection. Masters in memory have no connection: several services share one object. */
export function connectionContract(kind: string, prepare: () => Promise<MasterStage>): void {
  describe(`${kind} that is closed`, () => {
    const key = 'contract:closed';
    let stage: MasterStage;

    beforeAll(async () => {
      stage = await prepare();
    });
    afterAll(() => stage.end());

    it('still delivers answers in flight', async () => {
      const closing = await connected(stage.master());
      const answer = askMaster(closing, acquiring([key], 'mine'));
      await closing.close();
      expect(await answer).toEqual(GRANTED);
    });

    it('answers "unreachable" to requests that wait for a hung server', async () => {
      const closing = await connected(stage.master());
      stage.pause();
      try {
        const answer = askMaster(closing, inspecting(key));
        await closing.close();
        expect(await answer).toMatchObject({ kind: 'unreachable', sent: true });
      } finally {
        stage.resume();
      }
    });

    it('accepts no more requests, and may be closed again', async () => {
      const closing = await connected(stage.master());
      await closing.close();
      await closing.close();
      expect(closing.problem()).toMatchObject({ kind: 'unreachable', sent: false });
      expect(await askMaster(closing, inspecting(key))).toMatchObject({ kind: 'unreachable', sent: false });
    });

    it('may be closed without ever having been connected', async () =>
      await expect(stage.master().close()).resolves.toBeUndefined());
  });
}

async function connected(master: Master): Promise<Master> {
  await master.connect();
  return master;
}
