import { beforeEach, describe, expect, it } from '@jest/globals';
import { holderFrom, REVOKED, TokenSource } from '../../../lib/redlock/holder.js';
import { Inspector } from '../../../lib/operate/inspector.js';
import { Keyspace } from '../../../lib/settings/keyspace.js';
import { type MasterReply, RESERVED } from '../../../lib/masters/master.interface.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import { SystemRandom } from '../../../lib/runtime/system.js';
import { acquiring, ask, extending } from '../../support/ask.js';
import { Rig } from '../support/rig.js';
import { granted, refused, says, unreachable } from '../support/scripted-master.js';

const keyspace = new Keyspace('lock:');
let clock: ManualClock;
let masters: MemoryMaster[];
let inspector: Inspector;

beforeEach(() => {
  clock = new ManualClock();
  masters = ['a', 'b', 'c'].map((name) => new MemoryMaster(clock, name));
  inspector = inspectorOf(masters);
});

const inspectorOf = (some: readonly MemoryMaster[]): Inspector =>
  new Inspector({ masters: some, keyspace, clock, timeout: 50 });

const hold = (key: string, token: string, on = masters): Promise<unknown> =>
  Promise.all(on.map((master) => ask(master, acquiring([key], token, { ttl: 1_000 }))));
const TARGET = { resource: 'job' };
const KEY = keyspace.keyOf('job');
const holdKey = (token: string, on = masters): Promise<unknown> => hold(KEY, token, on);
const holdSlot = (slot: number, { resource = 'stripe', token = 'mine', on = masters } = {}): Promise<unknown> =>
  hold(keyspace.slotOf(resource, slot), token, on);

const heldFor = (remaining?: number): MasterReply => ({ kind: 'held', remaining });

describe('inspect()', () => {
  it('names the holder that most masters name, and how many processes wait at most', async () => {
    const rig = new Rig();
    const holder = { instance: 'web:1', since: new Date(5) };
    const earlier = { instance: 'web:1', since: new Date(4) };
    const answers = [{ holder: earlier, waiting: 1 }, { holder, waiting: 3 }, { holder }];
    rig.scriptEach(...answers.map((answer) => says({ kind: 'held', remaining: 5, ...answer })));
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'held', holder, waiting: 3 });
  });

  it.each<[string, MasterReply[], [string, number | undefined]]>([
    ['held by a quorum', [heldFor(5), heldFor(7), granted], ['held', 5]],
    ['held for an unknown time', [heldFor(), heldFor(), granted], ['held', undefined]],
    ['held by none', [granted, granted, granted], ['free', 0]],
    ['held by a minority', [heldFor(5), granted, granted], ['free', 0]],
    ['held by a minority of an even number', [heldFor(5), heldFor(6), granted, granted], ['free', 0]],
    ['one answers that it is free', [granted, unreachable, refused], ['unknown', undefined]],
    ['one answers that it is held', [heldFor(5), unreachable, refused], ['unknown', undefined]],
    ['one free, one held, one down', [granted, heldFor(5), unreachable], ['unknown', undefined]],
    ['no master answers', [unreachable, unreachable, unreachable], ['unknown', undefined]],
    ['held on one of one', [heldFor(5)], ['held', 5]],
  ])('reports the state of a resource with %s', async (_, answers, expected) => {
    const rig = new Rig({ masters: answers.length });
    rig.scriptEach(...answers.map(says));
    const { state, remaining } = await rig.redlock.inspector.inspect('a');
    expect([state, remaining]).toEqual(expected);
  });
});

describe('The search for permits that are taken', () => {
  it('finds them by their slots, whatever their number is, and neither the lock nor the permits of another name', async () => {
    for (const slot of [999, 0, 7]) await holdSlot(slot);
    await holdSlot(1, { resource: 'other' });
    await ask(masters[0]!, acquiring([keyspace.keyOf('stripe')], 'mine', { ttl: 1_000 }));
    await expect(inspector.findSlots('stripe')).resolves.toEqual([0, 7, 999]);
    await expect(inspector.findSlots('third')).resolves.toEqual([]);
  });

  it('finds one that a single master has, and not one that is only reserved for a waiter', async () => {
    await holdSlot(3, { on: masters.slice(2) });
    await holdSlot(4, { token: `${RESERVED}waiter` });
    await expect(inspector.findSlots('stripe')).resolves.toEqual([3]);
  });

  it('needs the answers of a quorum', async () => {
    await holdSlot(3);
    masters[0]!.pause();
    const [one, none] = [
      inspector.findSlots('stripe'),
      inspectorOf([...masters, masters[0]!, masters[0]!]).findSlots('stripe'),
    ];
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
    Object.assign(masters[0]!, { operator: { ...masters[0]!.operator, values } });
    await expect(inspectorOf(masters.slice(0, 1)).findSlots(resource)).resolves.toEqual([]);
    expect(asked).toBeGreaterThan(10_000);
    expect(asked).toBeLessThanOrEqual(2 ** 18);
  });
});

describe('A forced release', () => {
  // Protocol 7.5
  it('finds the holder on all masters, and keeps it from extending the lock for the remaining time', async () => {
    await holdKey('mine');
    const owners = await inspector.owners(TARGET);
    expect(owners.held.map(({ master, owner }) => [master, owner])).toEqual([
      ['a', 'mine'],
      ['b', 'mine'],
      ['c', 'mine'],
    ]);
    expect((await inspector.revoke(TARGET, owners)).outcome).toEqual({
      ...{ released: true, masters: 3, taken: ['a', 'b', 'c'], unreached: [], left: 1_000 },
    });
    for (const master of masters) {
      expect(await ask(master, extending([KEY], 'mine'))).toMatchObject({ kind: 'held' });
      expect(await ask(master, acquiring([KEY], 'yours'))).toMatchObject({ kind: 'held' });
    }
    expect(await inspector.owners(TARGET)).toMatchObject({ held: [], revoked: [{ owner: REVOKED }, {}, {}] });
    await clock.advance(1_000);
    expect(await inspector.owners(TARGET)).toEqual({ held: [], revoked: [], unasked: [] });
  });

  it('frees the lock at once for a holder that is gone, and says why not where it cannot', async () => {
    await holdKey('mine');
    const owners = await inspector.owners(TARGET);
    masters[0]!.takeDown();
    const { outcome, unreached } = await inspector.free(TARGET, owners);
    expect(outcome).toEqual({ released: true, masters: 3, taken: ['b', 'c'], unreached: ['a'], left: 0 });
    expect(unreached).toMatchObject([{ master: 'a', answer: { kind: 'unreachable' } }]);
    expect(await ask(masters[1]!, acquiring([KEY], 'yours'))).toMatchObject({ kind: 'granted' });
  });

  it('takes no key from a waiter for which it is reserved, and asks no master without this ability', async () => {
    await holdKey(`${RESERVED}waiter`, masters.slice(0, 1));
    Object.assign(masters[1]!, { operator: undefined });
    const { unasked, held } = await inspectorOf(masters.slice(0, 2)).owners(TARGET);
    expect(held).toEqual([]);
    expect(unasked).toMatchObject([{ answer: { kind: 'timeout', sent: false } }]);
  });
});

const tokensOf = (instance: string): TokenSource => new TokenSource(new SystemRandom(), instance);

const SECRET = '-_aZ09x'.repeat(4);

describe('A token', () => {
  it('says which process holds the lock, and since when', () => {
    const token = tokensOf('web-7d9f:1').next(1_790_000_000_000.9);
    expect(holderFrom(token)).toEqual({ instance: 'web-7d9f:1', since: new Date(1_790_000_000_000) });
  });

  it('is another one for each attempt of one moment, and says the time of each', () => {
    const tokens = tokensOf('a');
    const made = [tokens.next(5), tokens.next(5), tokens.next(6)];
    expect(new Set(made).size).toBe(3);
    expect(made.map((token) => holderFrom(token)?.since.getTime())).toEqual([5, 5, 6]);
  });

  it('may name a process that has the separator in its name', () =>
    expect(holderFrom(tokensOf('a@b@c').next(5))).toEqual({ instance: 'a@b@c', since: new Date(5) }));

  it.each([
    '',
    'another program',
    SECRET,
    `${SECRET}@`,
    `${SECRET}@k@`,
    `${SECRET}0@k@x`,
    `${SECRET.slice(1)}@k@x`,
    'reserved for 1@k@x',
    'released by force',
    '@k@x',
    `${SECRET}@productionhost@eu`,
    `${SECRET}@k@two words`,
    `${SECRET}@k@a\nb`,
  ])('of another program names no holder: %j', (value) => expect(holderFrom(value)).toBeUndefined());
});
