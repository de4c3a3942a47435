import { describe, expect, it } from '@jest/globals';
import { type LockedPlace, LockOrder } from '../../../../lib/core/contention/lock-order.js';
import { Chance } from '../../../simulation/engine/chance.js';
import {
  type Chain,
  findHang,
  generateProgram,
  type Take,
  type Waiting,
  waitsOf,
} from '../../support/lock-programs.js';

function place({ resource, mode }: Take): LockedPlace {
  const kind = { isShared: mode === 'shared', isPermit: mode === 'permit' };
  return { resources: [resource], ...kind, place: undefined };
}

function note(order: LockOrder, { held, wanted }: Waiting, refuse = false): readonly string[] {
  return order.note(held.map(place), place(wanted), refuse);
}

/** An exclusive chain of these names, innermost last; `s!` before a shared one, `p!` before a permit. */
function chain(...names: readonly string[]): Chain {
  return names.map((name) => {
    const [, mark, resource = name] = /^([sp])!(.*)$/.exec(name) ?? [];
    return { resource, mode: mark === 's' ? 'shared' : mark === 'p' ? 'permit' : 'exclusive' };
  });
}

function reports(...chains: readonly Chain[]): readonly string[] {
  const order = new LockOrder();
  return chains.flatMap((each) => waitsOf(each).flatMap((waiting) => note(order, waiting)));
}

function shuffled<T>(chance: Chance, items: readonly T[]): readonly T[] {
  const keyed = items.map((item) => ({ item, key: chance.fraction() }));
  return keyed.sort((one, other) => one.key - other.key).map(({ item }) => item);
}

describe('The order of nested locks', () => {
  it('is reported once when two chains reverse it, with names and places', () => {
    const order = new LockOrder();
    const at = (resource: string, method: string): LockedPlace => ({
      ...place({ resource, mode: 'exclusive' }),
      place: method,
    });
    const ask = (one: LockedPlace, other: LockedPlace): unknown => order.note([one], other, false);
    expect(ask(at('order:1', 'Orders.ship'), at('account:7', 'Accounts.debit'))).toEqual([]);
    expect(ask(at('account:8', 'Accounts.close'), at('order:2', 'Orders.cancel'))).toEqual([
      'lock order: "account:8" (Accounts.close) is held while "order:2" (Orders.cancel) is waited for, and "order:1" ' +
        '(Orders.ship) is held while "account:7" (Accounts.debit) is waited for. Such calls can wait for each other ' +
        'until their budgets end: take these locks in one order, or together in one call (see lockOrder)',
    ]);
    expect(ask(at('account:9', 'Accounts.close'), at('order:3', 'Orders.cancel'))).toEqual([]);
  });

  it.each<[string, number, readonly Chain[]]>([
    ['of chains that agree', 0, [chain('a', 'b'), chain('b', 'c'), chain('a', 'c')]],
    ['of four kinds', 1, [chain('a', 'b'), chain('b', 'c'), chain('c', 'd'), chain('d', 'a')]],
    ['of locks that an outer lock keeps apart', 0, [chain('g', 'a', 'b'), chain('g', 'b', 'a')]],
    ['under an outer lock that is shared', 1, [chain('s!g', 'a', 'b'), chain('s!g', 'b', 'a')]],
    ['under permits', 1, [chain('p!g', 'a', 'b'), chain('p!g', 'b', 'a')]],
    ['under an outer lock that not all chains have', 1, [chain('g', 'a', 'b'), chain('b', 'a')]],
    ['under one of two outer locks each', 1, [chain('g', 'a', 'b'), chain('h', 'a', 'b'), chain('g', 'b', 'a')]],
    ['under locks of different names', 1, [chain('g:1', 'a', 'b'), chain('g:2', 'b', 'a')]],
    ['under a lock that had only one name so far', 0, [chain('g:1', 'a', 'b'), chain('g:1', 'b', 'a')]],
    ['under a name that changes later', 1, [chain('g:1', 'a', 'b'), chain('g:1', 'b', 'a'), chain('g:2', 'a', 'b')]],
    ['of shared locks', 1, [chain('s!a', 's!b'), chain('s!b', 's!a')]],
    ['of permits and a lock', 1, [chain('p!a', 'b'), chain('b', 'p!a')]],
    ['of a permit and a lock of its name', 0, [chain('p!a', 'b'), chain('b', 'a')]],
    ['of names of one kind, from small to large', 0, [chain('a:1', 'a:2'), chain('a:2', 'a:3'), chain('a:1', 'a:3')]],
    ['of names of one kind, in a tree', 0, [chain('a:2', 'a:1'), chain('a:1', 'a:3'), chain('a:2', 'a:3')]],
    ['of names of one kind in a circle', 1, [chain('a:1', 'a:2'), chain('a:2', 'a:3'), chain('a:3', 'a:1')]],
  ])('%s has %i cycles', (_, count, chains) => expect(reports(...chains)).toHaveLength(count));

  it('is reported of each cycle that one call completes, and of a longer one after a shorter one', () => {
    expect(reports(chain('b', 'a'), chain('c', 'a'), chain('a', 'b', 'c'))).toHaveLength(2);
    const order = new LockOrder();
    for (const each of [chain('b', 'a'), chain('c', 'a')]) note(order, waitsOf(each)[0]!);
    const [a, others] = [place({ resource: 'a', mode: 'exclusive' }), ['b', 'c']] as const;
    expect(order.note([a], { ...a, resources: others }, false)).toHaveLength(2);
    const chains = [chain('b', 'a'), chain('b', 'c'), chain('c', 'a'), chain('a', 'b'), chain('s!g', 'a', 'b')];
    expect(reports(...chains)).toHaveLength(2);
  });

  it('is reported once of names of one kind, and still of other kinds after that', () => {
    const names = Array.from({ length: 40 }, (_, index) => `account:${index}`);
    const transfers = names.flatMap((one) => names.flatMap((other) => (one === other ? [] : [chain(one, other)])));
    expect(reports(...transfers)).toHaveLength(1);
    expect(reports(...transfers, chain('a', 'b'), chain('b', 'a'))).toHaveLength(2);
  });

  it('knows that an outer lock was shared at least once', () => {
    const under = (one: string, other: string): Chain => chain(one, other, 'a', 'b');
    const back = chain('s!t:1', 'b', 'a');
    expect(reports(under('t:1', 's!t:2'), under('s!t:1', 't:2'), back)).toHaveLength(1);
  });

  it('has a message of bounded length', () => {
    const ring = Array.from({ length: 500 }, (_, index) => chain(`k${index}`, `k${(index + 1) % 500}`));
    const [message, ...others] = reports(...ring);
    expect(others).toEqual([]);
    expect(message!.length).toBeLessThan(1_000);
    expect(message).toContain(', and 492 more. Such calls');
  });

  it('is reported of new kinds, however many there were', () => {
    const circles = Array.from({ length: 1_100 }, (_, index) => [
      chain(`a${index}`, `b${index}`),
      chain(`b${index}`, `a${index}`),
    ]);
    expect(reports(...circles.flat())).toHaveLength(1_100);
  });

  it('keeps nothing apart that runs side by side in one hold', () => {
    const order = new LockOrder();
    const split = { ...place({ resource: 'g', mode: 'exclusive' }), isSplit: true };
    const [a, b] = ['a', 'b'].map((resource) => place({ resource, mode: 'exclusive' })) as [LockedPlace, LockedPlace];
    expect(order.note([split, a], b, false)).toEqual([]);
    expect(order.note([{ ...split, isSplit: false }, b], a, false)).toEqual([expect.stringContaining('lock order: ')]);
  });

  it('does not change by what was refused', () => {
    const order = new LockOrder();
    const [forth, back] = [waitsOf(chain('a', 'b'))[0]!, waitsOf(chain('b', 'a'))[0]!];
    expect(note(order, forth, true)).toEqual([]);
    for (let attempt = 0; attempt < 2; attempt++)
      expect(note(order, back, true)).toEqual([expect.stringContaining('lock order: ')]);
    expect(note(order, forth, true)).toEqual([]);
    // Of several names, those before the refused one, too.
    const two = { ...place({ resource: 'c', mode: 'exclusive' }), resources: ['c', 'a'] };
    expect(order.note([place({ resource: 'b', mode: 'exclusive' })], two, true)).toEqual([
      expect.stringContaining('lock order: '),
    ]);
    expect(note(order, waitsOf(chain('c', 'b'))[0]!, true)).toEqual([]);
  });

  it('keeps the latest thousand pairs, and ten names of a call that are not too long', () => {
    const order = new LockOrder();
    note(order, waitsOf(chain('a', 'b'))[0]!);
    for (let count = 0; count < 2_000; count++) {
      expect(note(order, waitsOf(chain(`x${count}`, `x${count + 1}`))[0]!)).toEqual([]);
    }
    expect([order['pairs'].size, order['byHeld'].size]).toEqual([1_000, 1_000]);
    expect(note(order, waitsOf(chain('b', 'a'))[0]!)).toEqual([]);
    const many = { ...place({ resource: '', mode: 'exclusive' }), resources: Array.from('abcdefghijklmnop') };
    note(new LockOrder(), { held: chain('y'), wanted: { resource: 'z'.repeat(300), mode: 'exclusive' } });
    const other = new LockOrder();
    other.note([many], { ...many, resources: ['z'.repeat(257), 'z'] }, false);
    expect(other['pairs'].size).toBe(10);
  });
});

describe('In generated programs', () => {
  const seeds = Array.from({ length: 400 }, (_, index) => index + 1);
  const executions = (seed: number, hasVariables: boolean): readonly Chain[] => {
    const chance = new Chance(seed);
    return shuffled(chance, generateProgram(chance, hasVariables).flat());
  };

  it.each([false, true])(
    'a cycle is reported if, and only if, chains can hang (variable names: %s)',
    (hasVariables) => {
      const outcomes = seeds.map((seed) => {
        const chains = executions(seed, hasVariables);
        const canHang = findHang(chains.flatMap(waitsOf)) !== undefined;
        expect({ seed, isReported: reports(...chains).length > 0 }).toEqual({ seed, isReported: canHang });
        return canHang;
      });
      // Both are frequent.
      for (const outcome of [true, false]) {
        expect(outcomes.filter((each) => each === outcome).length).toBeGreaterThan(seeds.length / 10);
      }
    },
  );

  it('exactly those calls are refused with which the calls before them could hang', () => {
    for (const seed of seeds) {
      const order = new LockOrder();
      const accepted: Waiting[] = [];
      for (const each of executions(seed, false)) {
        for (const waiting of waitsOf(each)) {
          const isRefused = note(order, waiting, true).length > 0;
          expect({ seed, isRefused }).toEqual({ seed, isRefused: findHang([...accepted, waiting]) !== undefined });
          if (isRefused) break;
          accepted.push(waiting);
        }
      }
    }
  });
});
