import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { REVOKED, signatureOf } from '../../lib/core/holder.js';
import type { MasterReply, DrawRequest, GrantedReply, Master } from '../../lib/core/master.interface.js';
import { acquiring, ask, drawing, extending, inspecting, releasing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';

/** A server that a test can make fail, and the masters that speak to it. */
export interface MasterStage {
  /** A new master for the one server. */
  master(): Master;
  /** Stops answering; requests wait until `resume`. */
  pause(): void;
  resume(): void;
  takeDown(): Promise<void>;
  bringUp(): Promise<void>;
  end(): Promise<void>;
}

const GRANTED: MasterReply = { kind: 'granted' };
const HEALED: MasterReply = { kind: 'granted', healed: true };
/** Microseconds, in the year 2199: Lua must not lose a digit. */
const LARGE = 7_258_118_399_999_999;

/** What the algorithm requires of every implementation of a master. */
export function masterContract(kind: string, prepare: () => Promise<MasterStage>): void {
  describe(`${kind} as a master`, () => {
    let stage: MasterStage;
    let master: Master;
    let key: string;
    let other: string;
    let count = 0;

    beforeAll(async () => {
      stage = await prepare();
      master = stage.master();
      await master.connect();
    });
    afterAll(async () => {
      await master.close();
      await stage.end();
    });
    beforeEach(() => {
      key = `{contract:${++count}}:a`;
      other = `{contract:${count}}:b`;
    });

    it('has a name and no problem once it is connected', () => {
      expect(master.problem()).toBeUndefined();
      expect(master.name).not.toBe('');
    });

    describe('acquire', () => {
      it('takes a free key', async () => {
        expect(await ask(master, acquiring([key], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, inspecting(key))).toMatchObject({ kind: 'held' });
      });

      it('refuses a held key', async () => {
        await ask(master, acquiring([key], 'mine'));
        expect(await ask(master, acquiring([key], 'yours'))).toMatchObject({ kind: 'held' });
      });

      it('reports how long the key stays held', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 40_000 }));
        expectHeldFor(await ask(master, acquiring([key], 'yours')), 20_000, 40_000);
      });

      it('names the holder that its token names', async () => {
        const since = 1_790_000_000_000;
        await ask(master, acquiring([key], `${'ab12'.repeat(7)}${signatureOf('web-1@host:7', since)}`));
        const holder = { instance: 'web-1@host:7', since: new Date(since) };
        expect(await ask(master, acquiring([key], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(master, acquiring([key, other], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(master, extending([key], 'yours'))).toMatchObject({ kind: 'held', holder });
        expect(await ask(master, inspecting(key))).toMatchObject({ kind: 'held', holder });
        await ask(master, acquiring([other], REVOKED));
        expect(await ask(master, acquiring([key, other], 'x'))).not.toHaveProperty('revoked');
        expect(await ask(master, acquiring([other], 'x'))).toMatchObject({ kind: 'held', revoked: true });
        await ask(master, releasing([other], REVOKED));
        await ask(master, acquiring([other], 'another program'));
        expect(await ask(master, inspecting(other))).not.toHaveProperty('holder');
      });

      it('takes several keys together', async () => {
        expect(await ask(master, acquiring([key, other], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, inspecting(key))).toMatchObject({ kind: 'held' });
        expect(await ask(master, inspecting(other))).toMatchObject({ kind: 'held' });
      });

      // Protocol 4.2
      it('takes none of several keys when one of them is held, and reports the longest remaining time', async () => {
        const free = `${key}:free`;
        await ask(master, acquiring([key], 'one', { ttl: 100_000 }));
        await ask(master, acquiring([other], 'two', { ttl: 50_000 }));
        expectHeldFor(await ask(master, acquiring([key, free, other].sort(), 'mine')), 80_000, 100_000);
        expect(await ask(master, inspecting(free))).toEqual(GRANTED);
      });

      it('takes a key for the ttl and no longer', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 30 }));
        await eventually(async () => (await ask(master, acquiring([key], 'yours'))).kind === 'granted');
      });

      it.each(['a key with spaces', 'schlüssel:锁:🔒', 'two\r\nlines', '{a}{b}', 'x'.repeat(10_000)])(
        'takes any string as a key',
        async (name) => {
          const keys = [`${key}${name}`];
          expect(await ask(master, acquiring(keys, 'mine'))).toEqual(GRANTED);
          expect(await ask(master, acquiring(keys, 'yours'))).toMatchObject({ kind: 'held' });
          expect(await ask(master, releasing(keys, 'mine'))).toEqual(GRANTED);
          expect(await ask(master, inspecting(...keys))).toEqual(GRANTED);
        },
      );

      it('accepts fractions of a millisecond', async () => {
        expect(await ask(master, acquiring([key], 'mine', { ttl: 1000.5 }))).toEqual(GRANTED);
        expect(await ask(master, extending([key], 'mine', 1000.5))).toEqual(GRANTED);
        expect(await ask(master, releasing([key], 'mine', 0.5))).toEqual(GRANTED);
      });
    });

    describe('extend', () => {
      it('renews the life of keys that hold the token', async () => {
        await ask(master, acquiring([key, other], 'mine', { ttl: 10_000 }));
        expect(await ask(master, extending([key, other], 'mine', 50_000))).toEqual(GRANTED);
        expectHeldFor(await ask(master, inspecting(key)), 30_000, 50_000);
        expectHeldFor(await ask(master, inspecting(other)), 30_000, 50_000);
      });

      it('can shorten the life of a key', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 50_000 }));
        await ask(master, extending([key], 'mine', 10_000));
        expectHeldFor(await ask(master, inspecting(key)), 0, 10_000);
      });

      // Protocol 6.2
      it('sets absent keys again, and reports that it did', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 10_000 }));
        expect(await ask(master, extending([key, other], 'mine', 50_000))).toEqual(HEALED);
        expectHeldFor(await ask(master, inspecting(key)), 30_000, 50_000);
        expectHeldFor(await ask(master, inspecting(other)), 30_000, 50_000);
        await ask(master, releasing([key, other], 'mine'));
        expect(await ask(master, inspecting(key, other))).toEqual(GRANTED);
      });

      // Protocol 6.2
      it('refuses when another token holds a key, reports for how long, and changes no key', async () => {
        const absent = `${key}:absent`;
        await ask(master, acquiring([key], 'mine', { ttl: 10_000 }));
        await ask(master, acquiring([other], 'yours', { ttl: 50_000 }));
        expectHeldFor(await ask(master, extending([absent, key, other].sort(), 'mine')), 30_000, 50_000);
        expectHeldFor(await ask(master, inspecting(key)), 0, 10_000);
        expect(await ask(master, inspecting(absent))).toEqual(GRANTED);
      });
    });

    // Protocol 9.1
    describe('draw', () => {
      it('counts up from its previous number, for one holder after another', async () => {
        const fences = [];
        for (const token of ['one', 'two', 'three']) {
          await ask(master, acquiring([key], token));
          fences.push(await draw([key], token));
          await ask(master, releasing([key], token));
        }
        const [first = NaN] = fences;
        expect(fences).toEqual([first, first + 1, first + 2]);
      });

      it('draws no number below the floor, however large the floor is', async () => {
        await ask(master, acquiring([key], 'mine'));
        expect(await draw([key], 'mine', { atLeast: LARGE })).toBe(LARGE);
        expect(await draw([key], 'mine', { atLeast: 1 })).toBe(LARGE + 1);
      });

      it('only repeats or adopts a number if it is not the first draw', async () => {
        await ask(master, acquiring([key], 'mine'));
        const drawn = await draw([key], 'mine');
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn })).toBe(drawn);
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn + 5 })).toBe(drawn + 5);
        expect(await draw([key], 'mine', { isFirst: false, atLeast: drawn })).toBe(drawn + 5);
      });

      it('draws one number for several keys, larger than each of their counters, and writes it to all of them', async () => {
        await ask(master, acquiring([key, other], 'mine'));
        const ahead = await draw([other], 'mine', { atLeast: 1_000 });
        const both = await draw([key, other], 'mine');
        expect(both).toBe(ahead + 1);
        expect(await draw([key], 'mine')).toBe(both + 1);
        expect(await draw([other], 'mine')).toBe(both + 1);
      });

      it.each([true, false])(
        'refuses and changes nothing unless every key holds the token (first: %s)',
        async (isFirst) => {
          await ask(master, acquiring([key], 'mine'));
          const drawn = await draw([key], 'mine');
          for (const keys of [[key, other], [other]]) {
            expect(await ask(master, drawing(keys, 'mine', { isFirst, atLeast: LARGE }))).toMatchObject({
              kind: 'held',
            });
          }
          expect(await ask(master, drawing([key], 'yours', { isFirst, atLeast: LARGE }))).toMatchObject({
            kind: 'held',
          });
          expect(await draw([key], 'mine')).toBe(drawn + 1);
        },
      );

      it('neither extends the life of a key nor sets an absent key', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 10_000 }));
        await draw([key], 'mine');
        expectHeldFor(await ask(master, inspecting(key)), 0, 10_000);
        await ask(master, drawing([key, other].sort(), 'mine'));
        expect(await ask(master, inspecting(other))).toEqual(GRANTED);
      });

      // Protocol 9.5
      it('leaves the counters alone when an extension sets a key again, and reports that it did', async () => {
        await ask(master, acquiring([key], 'mine'));
        const mine = await draw([key], 'mine');
        await ask(master, releasing([key], 'mine'));
        await ask(master, acquiring([key], 'yours'));
        const yours = await draw([key], 'yours');
        await ask(master, releasing([key], 'yours'));
        expect(await ask(master, extending([key], 'mine'))).toEqual(HEALED);
        expect([mine, await draw([key], 'mine')]).toEqual([yours - 1, yours + 1]);
      });

      async function draw(keys: string[], token: string, options: Partial<DrawRequest> = {}): Promise<number> {
        const { fence = NaN } = (await ask(master, drawing(keys, token, options))) as GrantedReply;
        return fence;
      }
    });

    describe('release', () => {
      it('deletes the keys that hold the token', async () => {
        await ask(master, acquiring([key, other], 'mine'));
        expect(await ask(master, releasing([key, other], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, inspecting(key, other))).toEqual(GRANTED);
      });

      it('leaves the keys of other tokens alone', async () => {
        await ask(master, acquiring([key], 'mine'));
        await ask(master, acquiring([other], 'yours'));
        expect(await ask(master, releasing([key, other], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, inspecting(key))).toEqual(GRANTED);
        expect(await ask(master, inspecting(other))).toMatchObject({ kind: 'held' });
      });

      it('succeeds where nothing is held', async () => {
        expect(await ask(master, releasing([key], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, inspecting(key))).toEqual(GRANTED);
      });

      it('keeps the keys for the requested time', async () => {
        await ask(master, acquiring([key], 'mine', { ttl: 50_000 }));
        expect(await ask(master, releasing([key], 'mine', 10_000))).toEqual(GRANTED);
        expectHeldFor(await ask(master, inspecting(key)), 0, 10_000);
        await ask(master, releasing([key], 'mine', 30));
        await eventually(async () => (await ask(master, inspecting(key))).kind === 'granted');
      });

      it('does not keep a key that another token holds', async () => {
        await ask(master, acquiring([key], 'yours', { ttl: 50_000 }));
        await ask(master, releasing([key], 'mine', 100));
        expectHeldFor(await ask(master, inspecting(key)), 30_000, 50_000);
      });
    });

    describe('probe', () => {
      it('is granted by a master that accepts writes, and leaves no key', async () => {
        expect(await ask(master, { op: 'probe', keys: ['probed'] })).toMatchObject({ kind: 'granted' });
        expect(await ask(master, inspecting('probed'))).toEqual({ kind: 'granted' });
      });
    });

    describe('inspect', () => {
      it('reports the longest time for which a key is held', async () => {
        expect(await ask(master, inspecting(key, other))).toEqual(GRANTED);
        await ask(master, acquiring([key], 'mine', { ttl: 10_000 }));
        await ask(master, acquiring([other], 'yours', { ttl: 50_000 }));
        expectHeldFor(await ask(master, inspecting(key, other)), 30_000, 50_000);
      });
    });

    it('executes requests in the order in which they were sent', async () => {
      const answers = await Promise.all([
        ask(master, acquiring([key], 'one')),
        ask(master, releasing([key], 'one')),
        ask(master, acquiring([key], 'two')),
        ask(master, extending([key], 'one')),
        ask(master, releasing([key], 'two')),
        ask(master, extending([key], 'three')),
        ask(master, releasing([key], 'three')),
        ask(master, inspecting(key)),
      ]);
      expect(answers.map(({ kind }) => kind)).toEqual([
        ...['granted', 'granted', 'granted', 'held', 'granted', 'granted', 'granted', 'granted'],
      ]);
    });

    it('answers each of many requests', async () => {
      const keys = Array.from({ length: 500 }, (_, i) => `${key}:${i}`);
      const acquired = await Promise.all(keys.map((name) => ask(master, acquiring([name], 'mine'))));
      const released = await Promise.all(keys.map((name) => ask(master, releasing([name], 'mine'))));
      expect(new Set([...acquired, ...released].map(({ kind }) => kind))).toEqual(new Set(['granted']));
    });

    it('answers the requests that it received during a hang, late and in order', async () => {
      stage.pause();
      const kinds: string[] = [];
      const answers = [acquiring([key], 'mine'), releasing([key], 'mine'), inspecting(key)].map(async (request) => {
        kinds.push(`${request.op} ${(await ask(master, request)).kind}`);
      });
      expect(master.problem()).toBeUndefined();
      stage.resume();
      await Promise.all(answers);
      expect(kinds).toEqual(['acquire granted', 'release granted', 'inspect granted']);
    });

    it('works again after a reconnection', async () => {
      await ask(master, acquiring([key], 'mine'));
      master.reconnect();
      await eventually(() => master.problem() === undefined);
      expect(await ask(master, releasing([key], 'mine'))).toEqual(GRANTED);
      expect(await ask(master, inspecting(key))).toEqual(GRANTED);
    });

    describe('that is down', () => {
      beforeAll(async () => {
        await stage.takeDown();
        await eventually(() => master.problem() !== undefined);
      });
      afterAll(async () => {
        await stage.bringUp();
        await eventually(() => master.problem() === undefined);
      });

      it('reports the problem and its reason', () =>
        expect(master.problem()).toEqual({ kind: 'unreachable', reason: expect.stringMatching(/./), sent: false }));

      it.each([
        acquiring(['k'], 't'),
        extending(['k'], 't'),
        drawing(['k'], 't'),
        releasing(['k'], 't'),
        inspecting('k'),
      ])('answers $op at once without sending it', (request) => {
        const answers: MasterReply[] = [];
        master.ask(request, (answer) => answers.push(answer));
        expect(answers).toMatchObject([{ kind: 'unreachable', sent: false }]);
      });

      it('settles the first connection attempt of another master, and serves both once the server is up', async () => {
        const late = stage.master();
        const ready = jest.fn();
        late.onReady(ready);
        await late.connect();
        expect(late.problem()).toMatchObject({ kind: 'unreachable' });
        expect(ready).not.toHaveBeenCalled();

        await stage.bringUp();
        await eventually(() => late.problem() === undefined && master.problem() === undefined);
        expect(ready).toHaveBeenCalled();
        expect(await ask(late, acquiring([key], 'mine'))).toEqual(GRANTED);
        expect(await ask(master, releasing([key], 'mine'))).toEqual(GRANTED);
        expect(await ask(late, inspecting(key))).toEqual(GRANTED);
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
      const answer = ask(closing, acquiring([key], 'mine'));
      await closing.close();
      expect(await answer).toEqual(GRANTED);
    });

    it('answers "unreachable" to requests that wait for a hung server', async () => {
      const closing = await connected(stage.master());
      stage.pause();
      try {
        const answer = ask(closing, inspecting(key));
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
      expect(await ask(closing, inspecting(key))).toMatchObject({ kind: 'unreachable', sent: false });
    });

    it('may be closed without ever having been connected', async () =>
      await expect(stage.master().close()).resolves.toBeUndefined());
  });
}

async function connected(master: Master): Promise<Master> {
  await master.connect();
  return master;
}

function expectHeldFor(answer: MasterReply, more: number, atMost: number): void {
  expect(answer).toMatchObject({ kind: 'held', remaining: expect.any(Number) });
  const { remaining = NaN } = answer as { remaining?: number };
  expect(remaining).toBeGreaterThan(more);
  expect(remaining).toBeLessThanOrEqual(atMost);
}
