import { beforeEach, describe, expect, it } from '@jest/globals';
import { findOwners, type OperatorContext, revokeOwners, RESERVED } from '../../../lib/core/forced-release.js';
import { REVOKED } from '../../../lib/core/holder.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { acquiring, ask, extending } from '../../support/ask.js';

let clock: ManualClock;
let masters: MemoryMaster[];
let context: OperatorContext;

beforeEach(() => {
  clock = new ManualClock();
  masters = ['a', 'b', 'c'].map((name) => new MemoryMaster(clock, name));
  context = { masters, key: 'key', clock, timeout: 50 };
});

const hold = async (token: string, on = masters): Promise<unknown> => {
  return Promise.all(on.map((master) => ask(master, acquiring(['key'], token, { ttl: 1_000 }))));
};

describe('A forced release', () => {
  // Protocol 7.5
  it('finds the holder on all masters, and keeps it from extending the lock for the remaining time', async () => {
    await hold('mine');
    const owners = await findOwners(context);
    expect(owners.held.map(({ master, owner }) => [master, owner])).toEqual([
      ['a', 'mine'],
      ['b', 'mine'],
      ['c', 'mine'],
    ]);
    expect(await revokeOwners(owners, context)).toEqual({
      ...{ released: true, masters: 3, taken: ['a', 'b', 'c'], unreached: [], left: 1_000 },
    });
    for (const master of masters) {
      expect(await ask(master, extending(['key'], 'mine'))).toMatchObject({ kind: 'held' });
      expect(await ask(master, acquiring(['key'], 'yours'))).toMatchObject({ kind: 'held' });
    }
    expect(await findOwners(context)).toMatchObject({ held: [], revoked: [{ owner: REVOKED }, {}, {}] });
    await clock.advance(1_000);
    expect(await findOwners(context)).toEqual({ held: [], revoked: [], unasked: [] });
  });

  it('leaves a holder alone that came after the one that was found', async () => {
    await hold('mine');
    const owners = await findOwners(context);
    await clock.advance(1_000);
    await hold('yours');
    expect(await revokeOwners(owners, context)).toMatchObject({ released: true, left: 0 });
    for (const master of masters) {
      expect(await ask(master, extending(['key'], 'yours'))).toMatchObject({ kind: 'granted' });
    }
  });

  it('has not released the lock while a quorum of masters may still have it', async () => {
    await hold('mine');
    masters[1]!.takeDown();
    masters[2]!.pause();
    const finding = findOwners(context);
    await clock.advance(50);
    const owners = await finding;
    expect(owners.unasked).toMatchObject([
      { master: 'b', answer: { kind: 'unreachable' } },
      { master: 'c', answer: { kind: 'timeout' } },
    ]);
    expect(await revokeOwners(owners, context)).toMatchObject({
      ...{ released: false, taken: ['a'], unreached: ['b', 'c'] },
    });
  });

  it('takes no key from a waiter for which it is reserved, and asks no master without this ability', async () => {
    await hold(`${RESERVED}waiter`, masters.slice(0, 1));
    const [first, second] = masters;
    const without = { name: second!.name, operator: undefined };
    const { unasked, held } = await findOwners({ ...context, masters: [first!, without] });
    expect(held).toEqual([]);
    expect(unasked).toMatchObject([{ answer: { kind: 'timeout', sent: false } }]);
  });
});
