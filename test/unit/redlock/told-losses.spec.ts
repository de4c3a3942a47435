import { beforeEach, describe, expect, it } from '@jest/globals';
import { REVOKED } from '../../../lib/redlock/holder.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { Rig } from '../support/rig.js';
import {
  after,
  type Behaviour,
  cutOff,
  hangs,
  obeys,
  obeysAfter,
  only,
  says,
  type ScriptedMaster,
  tellsAfter,
  unreachable,
} from '../support/scripted-master.js';

const TTL = 9_000;
const extended = { ttl: TTL, extend: true };

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

/** Masters that lose their keys, each by its number from 0. */
function flush(...masters: number[]): void {
  for (const master of masters) rig.masters[master]!.memory.flush();
}

/** Another process has the lock for a moment. */
async function anotherHolder(resource = 'a', options = {}): Promise<void> {
  const lock = await rig.peer().lock(resource, { ttl: TTL, ...options });
  await rig.settle(lock.release());
}

/** A heal that does as `healing` says; everything else as usual. */
function heals(healing: Behaviour): Behaviour {
  return (request, reply, master) => {
    const isHeal = request.op === 'extend' && request.heals === true;
    (isHeal ? healing : obeys)(request, reply, master);
  };
}

const asked = (master: ScriptedMaster): number => master.asked.length;

// Protocol 6.3
describe('An extension of a lock whose keys were gone', () => {
  it.each([
    ['one of one', 1, [0], 'the key was gone from 1 of 1 master'],
    ['two of three', 3, [0, 1], 'the key was gone from 2 of 3 masters'],
    ['three of five', 5, [1, 2, 4], 'the key was gone from 3 of 5 masters'],
  ])('is a loss, told at once, if they were gone from %s masters', async (_, masters, lost, words) => {
    rig = new Rig({ masters });
    const lock = await rig.lock('a', extended);
    flush(...lost);
    await anotherHolder();
    await rig.clock.advance(3_000);
    expect(rig.losses).toMatchObject([{ cause: 'gone', resources: ['a'] }]);
    expect(rig.losses[0]!.message).toContain(`lost the lock on "a": ${words}: another holder may have had it (m1: `);
    expect([lock.isHeld, lock.loss, lock.signal.reason]).toEqual([false, rig.losses[0], rig.losses[0]]);
    expect(rig.keys).toEqual(rig.masters.map(() => 0));
    await rig.clock.advance(60_000);
    expect([rig.losses.length, rig.clock.pendingTimers]).toEqual([1, 0]);
  });

  it.each([
    ['one of two', 2, [0]],
    ['one of three', 3, [2]],
    ['two of five', 5, [0, 3]],
  ])('goes on if they were gone from %s masters, and sets them again there', async (_, masters, lost) => {
    rig = new Rig({ masters });
    const lock = await rig.lock('a', extended);
    flush(...lost);
    await rig.clock.advance(30_000);
    expect([lock.isHeld, rig.losses, rig.keys]).toEqual([true, [], rig.masters.map(() => 1)]);
    await rig.settle(lock.release());
    expect([rig.losses, rig.keys]).toEqual([[], rig.masters.map(() => 0)]);
  });

  it('goes on if one tells so later than the others, and sets them again there, too', async () => {
    const lock = await rig.lock('a', extended);
    flush(2);
    rig.masters[2]!.behaviour = tellsAfter(20);
    await rig.clock.advance(4_000);
    expect([lock.isHeld, rig.losses, rig.keys]).toEqual([true, [], [1, 1, 1]]);
  });

  it('does not count a master whose keys were set again by the extension before', async () => {
    const lock = await rig.lock('a', extended);
    flush(0);
    await rig.clock.advance(3_000);
    expect([lock.isHeld, rig.keys]).toEqual([true, [1, 1, 1]]);
    flush(1);
    await rig.clock.advance(3_000);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
    expect(rig.losses[0]!.message).toContain(
      '(m1: it may have lacked the key before; m2: the key was gone; m3: granted)',
    );
  });

  it('is a loss if another holder came and went before a master got its keys again', async () => {
    await rig.lock('a', extended);
    flush(2);
    rig.masters[2]!.behaviour = heals(obeysAfter(1_000));
    await rig.clock.advance(3_100);
    flush(0);
    await anotherHolder();
    await rig.clock.advance(1_000);
    expect(rig.keys).toEqual([0, 1, 1]);
    await rig.clock.advance(2_000);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it('is a loss if another holder came and went before the acquisition arrived at a master', async () => {
    rig.masters[2]!.behaviour = only('acquire', obeysAfter(2_000));
    await rig.lock('a', extended);
    flush(1);
    rig.masters[2]!.behaviour = obeys;
    await anotherHolder();
    await rig.clock.advance(2_100);
    expect(rig.keys).toEqual([1, 0, 1]);
    await rig.clock.advance(900);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it('counts a master that was late to grant, after one extension', async () => {
    rig.masters[2]!.behaviour = only('acquire', obeysAfter(2_000));
    const lock = await rig.lock('a', extended);
    await rig.clock.advance(3_100);
    flush(1);
    await rig.clock.advance(6_000);
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('counts a master again whose answer to the acquisition was lost, once it has shown that it has the keys', async () => {
    const silently: Behaviour = (request, reply, master) => {
      master.memory.ask(request, () => undefined);
      void master.clock.schedule(10, () => reply(cutOff));
    };
    rig.masters[2]!.behaviour = only('acquire', silently);
    const lock = await rig.lock('a', extended);
    await rig.clock.advance(6_100);
    flush(1);
    await rig.clock.advance(6_000);
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('never counts a master again whose keys may still be set by a request without an answer', async () => {
    const lock = await rig.lock('a', extended);
    flush(2);
    // Only the keys of the second heal are there.
    let sent = 0;
    rig.masters[2]!.behaviour = heals((...all) => (sent++ === 0 ? says(cutOff) : obeys)(...all));
    await rig.clock.advance(12_100);
    expect([sent, lock.isHeld, rig.keys]).toEqual([2, true, [1, 1, 1]]);
    flush(1);
    await rig.clock.advance(3_000);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it('counts no master whose acquisition, cut off, was still open when the last round was sent', async () => {
    const [, , late] = rig.masters;
    late!.behaviour = only('acquire', (request, reply, { memory }) => {
      rig.clock.schedule(10, () => reply(cutOff));
      rig.clock.schedule(100, () => memory.ask(request, () => undefined));
    });
    const lock = await rig.lock('a', extended);
    await rig.clock.advance(3_100);
    expect([lock.isHeld, rig.keys]).toEqual([true, [1, 1, 1]]);
    flush(0);
    await rig.clock.advance(3_000);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it('awaits the answer that makes it a loss, although it cannot be granted any more', async () => {
    await rig.lock('a', extended);
    flush(0, 2);
    rig.masters[1]!.behaviour = only('extend', says(unreachable));
    rig.masters[2]!.behaviour = only('extend', after(30, obeys));
    await rig.clock.advance(3_029);
    expect(rig.losses).toEqual([]);
    await rig.clock.advance(1);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it('sets nothing again on a master that tells only after the release that they were gone', async () => {
    const lock = await rig.lock('a', extended);
    flush(2);
    const [, , slow] = rig.masters;
    slow!.behaviour = only('extend', obeysAfter(5_000));
    await rig.clock.advance(3_100);
    slow!.behaviour = obeys;
    await rig.settle(lock.release());
    await rig.clock.advance(5_000);
    expect([slow!.requests('extend').length, rig.keys, rig.losses]).toEqual([1, [0, 0, 0], []]);
  });

  it('sets nothing again that a heal would set after the lock was released', async () => {
    const lock = await rig.lock('a', extended);
    flush(0);
    rig.masters[0]!.behaviour = heals(hangs);
    await rig.clock.advance(3_000);
    const [heal] = rig.masters[0]!.requests('extend').filter((request) => request.heals);
    await rig.settle(lock.release());
    expect(heal?.withdrawn).toBe(true);
  });
});

// Protocol 7.2 and 7.6
describe('A release of a lock that is not there any more', () => {
  async function releases(lock: Lock): Promise<void> {
    await rig.settle(lock.release());
  }

  it.each([
    ['gone', 'the key was gone from 2 of 3 masters: another holder may have had it', (): unknown => anotherHolder()],
    ['owner-changed', 'another process holds it now', (): unknown => rig.peer().lock('a', { ttl: TTL })],
  ] as const)('is a loss, told before it resolves: %s', async (cause, words, meanwhile) => {
    const lock = await rig.lock('a', extended);
    const { signal } = lock;
    flush(0, 1);
    await meanwhile();
    await releases(lock);
    expect(rig.losses).toMatchObject([{ cause }]);
    expect(rig.losses[0]!.message).toContain(`lost the lock on "a": ${words} (`);
    expect([lock.loss, signal.reason, lock.isHeld]).toEqual([rig.losses[0], rig.losses[0], false]);
    const requests = rig.masters.map(asked);
    await releases(lock);
    await rig.clock.advance(1_000);
    expect([rig.losses.length, rig.masters.map(asked)]).toEqual([1, requests]);
  });

  it('says so if an operator has released it by force', async () => {
    const lock = await rig.lock('a', extended);
    for (const { memory } of rig.masters) {
      const held = (await memory.operator.read('lock:a')) as { value: string };
      await memory.operator.revoke('lock:a', held.value);
    }
    await releases(lock);
    expect(rig.losses[0]?.message).toContain('lost the lock on "a": an operator released it by force');
    expect(REVOKED).toBe('released by force');
  });

  it.each([
    ['a minority lacks it', [0], []],
    ['too few masters answer', [0], [1, 2]],
    ['the others do not answer', [0, 1], [1]],
  ])('tells nothing if %s', async (_, lost, silent) => {
    const lock = await rig.lock('a', { ttl: TTL });
    flush(...lost);
    for (const master of silent) rig.masters[master]!.behaviour = only('release', hangs);
    const released = rig.follow(lock.release());
    await rig.clock.advance(50);
    expect([released.state, rig.losses, lock.loss]).toEqual(['fulfilled', [], undefined]);
  });

  it('counts a master as lacking whose keys were set again since another holder may have had them', async () => {
    const lock = await rig.lock('a', extended);
    flush(0);
    await rig.clock.advance(3_000);
    flush(1);
    await releases(lock);
    expect(rig.losses).toMatchObject([{ cause: 'gone' }]);
  });

  it.each([
    ['with minHold', { minHold: 5_000 }, ['a']],
    ['of a shared lock', { mode: 'shared' as const }, ['a']],
    ['of a permit', { permits: 2 }, ['a']],
    ['of one of several resources', {}, ['a', 'b']],
  ])('is a loss: %s', async (_, options, names) => {
    const lock = await rig.lock(names, { ...extended, ...options });
    flush(1, 2);
    await releases(lock);
    expect(rig.losses).toMatchObject([{ cause: 'gone', resources: names }]);
  });
});

// Protocol 7.6
describe('A release of a lock that one master was not asked for', () => {
  it.each([
    ['still holds it', false],
    ['has come and gone', true],
  ])('reports that another one %s', async (_, isGone) => {
    const [a, , c] = rig.masters;
    c!.behaviour = only('acquire', says(unreachable));
    const lock = await rig.lock('a', { ttl: 10_000 });
    c!.behaviour = obeys;
    a!.memory.flush();
    const other = await rig.peer().lock('a', { ttl: 10_000 });
    if (isGone) await rig.settle(other.release());
    await rig.settle(lock.release());
    expect(lock.loss).toBeDefined();
    expect(rig.losses).toHaveLength(1);
  });

  it('is not kept for that master while it is away', async () => {
    const [, , c] = rig.masters;
    c!.behaviour = says(unreachable);
    const lock = await rig.lock('a', { ttl: 10_000 });
    await rig.settle(lock.release());
    expect(c!.requests('release')).toHaveLength(1);
    c!.behaviour = obeys;
    c!.becomeReady();
    await rig.clock.settle();
    expect(c!.requests('release')).toHaveLength(1);
  });
});

// Protocol 6.3
describe('Of five masters, the fifth of which owes its answer to the acquisition, the fourth', () => {
  it.each(['release', 'extension'])(
    'is unsure at once if it grants late: the %s is told of another holder',
    async (what) => {
      rig = new Rig({ masters: 5 });
      rig.scriptEach(obeys, obeys, obeys, obeysAfter(300), hangs);
      const lock = await rig.lock('a', { ttl: 3_000, extend: what === 'extension' });
      rig.scriptAll(obeys);
      flush(0);
      if (what === 'release') flush(1);
      const other = await rig.peer().lock('a', { ttl: 3_000, wait: 0 });
      expect([lock.isHeld, other.isHeld]).toEqual([true, true]);
      await rig.settle(other.release());
      await rig.clock.advance(310);
      // For this process.
      rig.masters[4]!.behaviour = hangs;
      if (what === 'release') void lock.release();
      await rig.clock.advance(2 * TTL);
      expect(rig.losses).toHaveLength(1);
      expect(lock.loss).toBe(rig.losses[0]);
    },
  );

  it('is sure if it granted in time: the lock survives the first master', async () => {
    rig = new Rig({ masters: 5 });
    rig.scriptEach(
      obeys,
      obeys,
      obeys,
      tellsAfter(1),
      after(1_000, (_, reply) => reply(cutOff)),
    );
    const lock = await rig.lock('a', { ttl: 9_000, extend: true });
    await rig.clock.advance(10);
    rig.scriptEach(obeys, obeys, obeys, obeys, says(unreachable));
    await rig.clock.advance(1_500);
    rig.masters[0]!.behaviour = says(unreachable);
    await rig.clock.advance(20_000);
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });
});

it('A release that was sent in time, and arrives when the keys have expired, is no loss', async () => {
  const lock = await rig.lock('a', { ttl: 200 });
  await rig.clock.advance(193);
  expect(lock.isHeld).toBe(true);
  for (const master of rig.masters) master.behaviour = obeysAfter(10);
  const released = lock.release();
  await rig.clock.advance(60);
  await released;
  expect(lock.loss).toBeUndefined();
});
