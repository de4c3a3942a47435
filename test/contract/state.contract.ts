import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MasterReply } from '../../lib/masters/master.interface.js';
import type { StateReport } from '../../lib/fencing/state-entry.js';
import { acquiring, ANY_CONNECTION, releasing } from '../support/ask.js';
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

    const open = (number: number, token = 'mine'): Promise<MasterReply> =>
      ask({ op: 'open-state', keys: [key], entry, token, marker: '', since: ANY_CONNECTION, number, life: 30 * DAY });
    const write = (number: number, json: string, sequence = 0, token = 'mine'): Promise<MasterReply> =>
      ask({
        ...{ op: 'write-state', keys: [key], entry, token, marker: '', since: ANY_CONNECTION, life: 30 * DAY, json },
        version: { number, sequence },
      });
    const read = async (): Promise<StateReport> => {
      const reply = await ask({ op: 'read-state', keys: [key], entry });
      if (reply.kind !== 'granted' || !reply.state) throw new Error(`unexpected ${reply.kind}`);
      return reply.state;
    };
    const json = async (): Promise<string | undefined> => (await read()).entry?.stored?.json;

    it('is empty before the first write, also when it has been opened', async () => {
      expect((await read()).entry).toBeUndefined();
      expect(await open(5)).toEqual({ kind: 'granted', state: { entry: undefined, marker: '' } });
      expect((await read()).entry).toEqual({ claim: 5, stored: undefined });
    });

    it('gives the next holder what the last one wrote, byte by byte', async () => {
      const value = JSON.stringify({ text: 'line\nline  two \u2028 \u{1f512} \0', list: [1, null] });
      await open(1);
      expect(await write(1, value)).toEqual({ kind: 'granted' });
      const stored = { version: { number: 1, sequence: 0 }, json: value, life: 30 * DAY, marker: '' };
      expect(await open(2)).toEqual({ kind: 'granted', state: { entry: { claim: 1, stored }, marker: '' } });
      expect((await read()).entry).toEqual({ claim: 2, stored });
    });

    // Protocol 10.3
    it.each([
      ['a smaller number', LARGE, LARGE - 1],
      ['a smaller number, although its digits sort later', 10, 9],
      ['the same number', 7, 7],
    ])('refuses to be opened with %s', async (_, first, second) => {
      await open(first);
      expect(await open(second)).toEqual({ ...REFUSED, claim: first });
      expect((await read()).entry?.claim).toBe(first);
    });

    // Protocol 10.5
    it('refuses a write whose number is smaller than the one that claimed it last', async () => {
      await open(LARGE - 1);
      await write(LARGE - 1, '"first"');
      await open(LARGE);
      expect(await write(LARGE - 1, '"late"', 1)).toEqual({ ...REFUSED, claim: LARGE });
      expect(await json()).toBe('"first"');
    });

    // Protocol 10.5
    it('accepts a write with a larger number that has not opened it here, and is claimed by it', async () => {
      await open(1);
      expect(await write(2, '2')).toEqual({ kind: 'granted' });
      expect((await read()).entry).toMatchObject({ claim: 2, stored: { json: '2' } });
    });

    // Protocol 10.5
    it('confirms a repeated write, and ignores an earlier one that arrives after it', async () => {
      await open(1);
      await write(1, '"second"', 11);
      expect(await write(1, '"second"', 11)).toEqual({ kind: 'granted' });
      expect(await write(1, '"first"', 9)).toEqual(REFUSED);
      expect(await json()).toBe('"second"');
    });

    // Protocol 10.4
    it('is open only to the holder of the lock', async () => {
      expect(await open(1, 'yours')).toEqual(REFUSED);
      await open(1);
      expect(await write(1, '1', 0, 'yours')).toEqual(REFUSED);
      await ask(releasing([key], 'mine'));
      expect(await write(1, '1')).toEqual(REFUSED);
      expect((await read()).entry).toEqual({ claim: 1, stored: undefined });
    });

    it.each(['hello', 'hello world', '1 2', '1 2 0 5 6'])(
      'refuses an entry of another program and leaves it alone: %j',
      async (value) => {
        await ask(acquiring([entry], value));
        const refused = { kind: 'refused', code: 'WRONGTYPE' };
        expect(await open(1)).toMatchObject(refused);
        expect(await write(1, '1')).toMatchObject(refused);
        expect(await ask({ op: 'read-state', keys: [key], entry })).toMatchObject(refused);
        expect(await ask(acquiring([entry], value))).toMatchObject({ kind: 'granted' });
      },
    );

    it('can be cleared, and remembers its version', async () => {
      await open(1);
      await write(1, '1');
      await write(1, '', 1);
      expect((await read()).entry?.stored).toMatchObject({ json: '', version: { number: 1, sequence: 1 } });
    });
  });
}
