import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MasterReply } from '../../lib/core/master.interface.js';
import type { Ballot, StateReport } from '../../lib/core/state/state-entry.js';
import { acquiring, releasing } from '../support/ask.js';
import { LARGE, OnStage, type Stage } from './stage.js';

const DAY = 86_400_000;
const REFUSED: MasterReply = { kind: 'held', remaining: undefined };

/** What the state of a lock requires of every implementation of a master. */
export function stateContract(kind: string, prepare: () => Promise<Stage>): void {
  describe(`The state on a ${kind}`, () => {
    const { ask } = new OnStage(prepare);
    let entry: string;
    let key: string;
    let count = 0;

    beforeEach(async () => {
      key = `{state contract:${++count}}`;
      entry = `{state contract:${count}}\0state`;
      await ask(acquiring([key], 'mine'));
    });

    const ballot = (number: number, id = 'a'): Ballot => ({ number, id });
    const open = (with_: Ballot, token = 'mine'): Promise<MasterReply> =>
      ask({ op: 'open-state', keys: [key], entry, token, generation: '', ballot: with_, life: 30 * DAY });
    const write = (with_: Ballot, json: string, sequence = 0, token = 'mine'): Promise<MasterReply> =>
      ask({
        ...{ op: 'write-state', keys: [key], entry, token, generation: '', life: 30 * DAY, json },
        version: { ...with_, sequence },
      });
    const read = async (): Promise<StateReport> => {
      const reply = await ask({ op: 'read-state', keys: [key], entry });
      if (reply.kind !== 'granted' || !reply.state) throw new Error(`unexpected ${reply.kind}`);
      return reply.state;
    };
    const json = async (): Promise<string | undefined> => (await read()).entry?.stored?.json;

    it('is empty before the first write, also when it has been opened', async () => {
      expect((await read()).entry).toBeUndefined();
      expect(await open(ballot(5))).toMatchObject({ kind: 'granted', state: { isFirst: true, generation: '' } });
      expect((await read()).entry).toEqual({ promised: ballot(5), stored: undefined });
    });

    it('gives the next holder what the last one wrote, byte by byte', async () => {
      const value = JSON.stringify({ text: 'line\nline  two \u2028 \u{1f512} \0', list: [1, null] });
      await open(ballot(1));
      expect(await write(ballot(1), value)).toEqual({ kind: 'granted' });
      const reply = await open(ballot(2, 'b'));
      expect(reply).toMatchObject({
        state: { entry: { promised: ballot(1), stored: { json: value, life: 30 * DAY } } },
      });
    });

    it('reports the clock of the master, and when the value was written by it', async () => {
      await open(ballot(1));
      const before = (await read()).time;
      await write(ballot(1), '1');
      const { time, entry: written } = await read();
      const at = written?.stored?.at ?? 0;
      expect(at).toBeGreaterThanOrEqual(before);
      expect(at).toBeLessThanOrEqual(time);
      expect(Math.abs(time - Date.now())).toBeLessThan(60_000);
    });

    // Protocol 10.1 and 10.5
    it.each<[string, Ballot, Ballot]>([
      ['a smaller number', ballot(LARGE), ballot(LARGE - 1)],
      ['the same number and a smaller id', ballot(LARGE, 'b'), ballot(LARGE, 'a')],
      ['a smaller number, although its digits sort later', ballot(10), ballot(9)],
      ['the same ballot', ballot(7), ballot(7)],
    ])('refuses to be opened with %s', async (_, first, second) => {
      await open(first);
      expect(await open(second)).toEqual({ ...REFUSED, promised: first });
      expect((await read()).entry?.promised).toEqual(first);
    });

    // Protocol 10.7
    it('refuses a write whose ballot is smaller than the one that opened it last', async () => {
      await open(ballot(LARGE - 1));
      await write(ballot(LARGE - 1), '"first"');
      await open(ballot(LARGE, 'b'));
      expect(await write(ballot(LARGE - 1), '"late"', 1)).toEqual({ ...REFUSED, promised: ballot(LARGE, 'b') });
      expect(await json()).toBe('"first"');
    });

    it('accepts a write with a larger ballot that has not opened it here', async () => {
      await open(ballot(1));
      expect(await write(ballot(2), '2')).toEqual({ kind: 'granted' });
      expect((await read()).entry).toMatchObject({ promised: ballot(2), stored: { json: '2' } });
    });

    // Protocol 10.7
    it('confirms a repeated write, and ignores an earlier one that arrives after it', async () => {
      await open(ballot(1));
      await write(ballot(1), '"second"', 11);
      expect(await write(ballot(1), '"second"', 11)).toEqual({ kind: 'granted' });
      expect(await write(ballot(1), '"first"', 9)).toEqual(REFUSED);
      expect(await json()).toBe('"second"');
    });

    // Protocol 10.4
    it('is open only to the holder of the lock', async () => {
      expect(await open(ballot(1), 'yours')).toEqual(REFUSED);
      await open(ballot(1));
      expect(await write(ballot(1), '1', 0, 'yours')).toEqual(REFUSED);
      await ask(releasing([key], 'mine'));
      expect(await write(ballot(1), '1')).toEqual(REFUSED);
      expect((await read()).entry).toEqual({ promised: ballot(1), stored: undefined });
    });

    it.each(['hello', 'hello world', '1 a 2', '1 a 2 b 0 5 6'])(
      'refuses an entry of another program and leaves it alone: %j',
      async (value) => {
        await ask(acquiring([entry], value));
        const refused = { kind: 'refused', code: 'WRONGTYPE' };
        expect(await open(ballot(1))).toMatchObject(refused);
        expect(await write(ballot(1), '1')).toMatchObject(refused);
        expect(await ask({ op: 'read-state', keys: [key], entry })).toMatchObject(refused);
        expect(await ask(acquiring([entry], value))).toMatchObject({ kind: 'granted' });
      },
    );

    it('can be cleared, and remembers its version', async () => {
      await open(ballot(1));
      await write(ballot(1), '1');
      await write(ballot(1), '', 1);
      expect((await read()).entry?.stored).toMatchObject({ json: '', version: { ...ballot(1), sequence: 1 } });
    });
  });
}
