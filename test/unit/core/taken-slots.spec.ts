import { beforeEach, describe, expect, it } from '@jest/globals';
import { RESERVED } from '../../../lib/core/forced-release.js';
import { Keyspace } from '../../../lib/core/keyspace.js';
import { findSlots, type SlotSearch } from '../../../lib/core/taken-slots.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import { acquiring, ask } from '../../support/ask.js';

const keyspace = new Keyspace('lock:');
let clock: ManualClock;
let masters: MemoryMaster[];
let search: SlotSearch;

beforeEach(() => {
  clock = new ManualClock();
  masters = ['a', 'b', 'c'].map((name) => new MemoryMaster(clock, name));
  search = { masters, keyspace, resource: 'stripe', clock, timeout: 50 };
});

const hold = (slot: number, { resource = 'stripe', token = 'mine', on = masters } = {}): Promise<unknown> =>
  Promise.all(on.map((master) => ask(master, acquiring([keyspace.slotOf(resource, slot)], token, { ttl: 1_000 }))));

describe('The search for permits that are taken', () => {
  it('finds them by their slots, whatever their number is, and neither the lock nor the permits of another name', async () => {
    for (const slot of [999, 0, 7]) await hold(slot);
    await hold(1, { resource: 'other' });
    await ask(masters[0]!, acquiring([keyspace.keyOf('stripe')], 'mine', { ttl: 1_000 }));
    await expect(findSlots(search)).resolves.toEqual([0, 7, 999]);
    await expect(findSlots({ ...search, resource: 'third' })).resolves.toEqual([]);
  });

  it('finds one that a single master has, and not one that is only reserved for a waiter', async () => {
    await hold(3, { on: masters.slice(2) });
    await hold(4, { token: `${RESERVED}waiter` });
    await expect(findSlots(search)).resolves.toEqual([3]);
  });

  it('needs the answers of a quorum', async () => {
    await hold(3);
    masters[0]!.pause();
    const [one, none] = [findSlots(search), findSlots({ ...search, masters: [...masters, masters[0]!, masters[0]!] })];
    await clock.advance(49);
    await clock.advance(1);
    await expect(one).resolves.toEqual([3]);
    await expect(none).resolves.toBeUndefined();
    masters[0]!.resume();
  });

  it('asks about fewer slots of a name that is very long', async () => {
    const resource = 'x'.repeat(10_000);
    let asked = 0;
    const values = (keys: readonly string[]): Promise<readonly null[]> => {
      asked = keys.join('').length;
      return Promise.resolve(keys.map(() => null));
    };
    const operator = { ...masters[0]!.operator, values };
    await expect(findSlots({ ...search, resource, masters: [{ name: 'a', operator }] })).resolves.toEqual([]);
    expect(asked).toBeGreaterThan(10_000);
    expect(asked).toBeLessThanOrEqual(2 ** 18);
  });
});
