import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, type MasterReport } from '../../../lib/redlock/errors.js';
import { MachineClock } from '../support/machine-clock.js';
import { Rig } from '../support/rig.js';
import { hangs, only, refused, says, tellsAfter, unreachable } from '../support/scripted-master.js';

const TTL = 10_000;
const DRIFT = 102;

let rig: Rig;
let clock: MachineClock;

beforeEach(() => {
  // A process on a machine with clocks of its own.
  rig = new Rig({ ttl: TTL, clockOf: (others) => (clock = new MachineClock(others)) });
});

/** Its wall clock is set, which the machine notices at once. */
async function notices(step: number): Promise<void> {
  clock.ahead += step;
  clock.notice();
  await rig.clock.settle();
}

const BOTH = 'the wall clock was stepped forward, or the machine was suspended, by';

// Protocol 3.1
describe('A lock whose wall clock is stepped forward', () => {
  it.each([
    ['by 15 s', 15_000, '15 s'],
    ['by a bit more than it lasts', TTL, '10 s'],
  ])('is lost, and the message names both causes: %s', async (_, by, words) => {
    const lock = await rig.lock('a', { extend: true });
    await rig.clock.advance(1_000);
    clock.ahead += by;
    const loss = { cause: 'expired', message: `lost the lock on "a": ${BOTH} ${words}` };
    expect([lock.isHeld, lock.remaining(), lock.loss]).toMatchObject([false, 0, loss]);
    expect([lock.signal.aborted, rig.losses, rig.keys]).toEqual([false, [], [1, 1, 1]]);
    await notices(0);
    expect(rig.losses).toEqual([lock.loss]);
    expect([lock.signal.reason, rig.keys]).toEqual([lock.loss, [0, 0, 0]]);
  });

  it('lasts that much less if some of its validity is left, and as long as before once it is extended', async () => {
    const lock = await rig.lock('a', { extend: true });
    await notices(4_000);
    expect([lock.isHeld, lock.remaining()]).toEqual([true, TTL - DRIFT - 4_000]);
    await lock.extend();
    expect(lock.remaining()).toBe(TTL - DRIFT);
    await rig.clock.advance(60_000);
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('has been kept for that much longer, for maxHold', async () => {
    await rig.lock('a', { extend: true, maxHold: 12_000 });
    await rig.clock.advance(8_000);
    await notices(5_000);
    expect(rig.losses).toMatchObject([{ cause: 'max-hold', message: `lost the lock on "a": ${BOTH} 5 s` }]);
  });
});

describe('A lock whose machine was suspended', () => {
  it('is not believed again after another process had it meanwhile', async () => {
    const lock = await rig.lock('a', { extend: true });
    clock.suspend(11_000);
    const other = await rig.peer().acquire('a', { ttl: TTL });
    await other.release();
    expect(lock.isHeld).toBe(false);
    // The clock is set back by a service that keeps the time.
    await notices(-11_000);
    expect([lock.isHeld, rig.losses.length]).toEqual([false, 1]);
  });
});

const SHORT_TTL = 9_000;

/** A rig, and the dangers that its locks were reported to be in. */
function observe() {
  const dangers: { resources: readonly string[]; remaining: number; answers: readonly MasterReport[] }[] = [];
  const rig = new Rig({
    observer: { lockInDanger: (resources, remaining, answers) => dangers.push({ resources, remaining, answers }) },
  });
  return { rig, dangers };
}

describe('A lock whose extensions fail', () => {
  it('is in danger when less than a third of its ttl is left, which is reported once, with the replies', async () => {
    const { rig, dangers } = observe();
    await rig.lock('a', { ttl: SHORT_TTL, extend: true });
    rig.script(2, only('extend', says(refused)));
    await rig.clock.advance(5_900);
    expect(dangers).toEqual([]);
    await rig.clock.advance(3_000);
    expect(dangers).toHaveLength(1);
    const [danger] = dangers;
    expect(danger).toMatchObject({ resources: ['a'] });
    expect(danger?.remaining).toBeLessThan(SHORT_TTL / 3);
    expect(danger?.remaining).toBeGreaterThan(SHORT_TTL / 3 - SHORT_TTL / 10 - 100);
    expect(danger?.answers.map(({ master, answer }) => [master, answer?.kind])).toEqual([
      ['m1', 'refused'],
      ['m2', 'refused'],
      ['m3', 'granted'],
    ]);
  });

  it('is in danger a second time only after an extension that succeeded', async () => {
    const { rig, dangers } = observe();
    const lock = await rig.lock('a', { ttl: SHORT_TTL, extend: true });
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(8_000);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(1_000);
    expect([lock.isHeld, dangers.length]).toEqual([true, 1]);
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(20_000);
    expect([dangers.length, rig.losses.length]).toEqual([2, 1]);
  });

  it('is in danger if the holder’s own extension fails late', async () => {
    const { rig, dangers } = observe();
    const lock = await rig.lock('a', { ttl: SHORT_TTL });
    rig.scriptAll(only('extend', says(unreachable)));
    await rig.clock.advance(8_000);
    await expect(lock.extend()).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    expect(dangers).toHaveLength(1);
  });
});

describe('The error of a lock that expires', () => {
  it('has what each master last replied', async () => {
    const { rig } = observe();
    await rig.lock('a', { ttl: SHORT_TTL, extend: true });
    rig.script(2, only('extend', says(unreachable)));
    await rig.clock.advance(SHORT_TTL);
    const [loss] = rig.losses;
    expect(loss?.message).toBe(
      'lost the lock on "a": its validity ended before a quorum of masters agreed to extend it ' +
        '(m1: unreachable, connection refused; m2: unreachable, connection refused; m3: granted)',
    );
    expect(loss).toMatchObject({ cause: 'expired' });
    expect(loss?.answers.map(({ answer }) => answer?.kind)).toEqual(['unreachable', 'unreachable', 'granted']);
  });

  it('names masters that hang, even if the first extension is still under way', async () => {
    const rig = new Rig({ masterTimeout: 2_000 });
    const lock = await rig.lock('a', { ttl: SHORT_TTL });
    rig.script(2, only('extend', hangs));
    await rig.clock.advance(8_500);
    expect(await rig.outcomeAfter(1_000, lock.extend())).toMatchObject({ state: 'rejected' });
    expect(rig.losses[0]?.message).toContain('(m1: no answer in time; m2: no answer in time; m3: granted)');
  });

  it('says that it was not extended within its last ttl if nothing was to extend it, and blames no master', async () => {
    const { rig, dangers } = observe();
    for (const ttl of [SHORT_TTL, 4_000]) {
      const lock = await rig.lock('a', { ttl: SHORT_TTL });
      if (ttl < SHORT_TTL) await lock.extend(ttl);
      await rig.clock.advance(SHORT_TTL);
      const message = `lost the lock on "a": it was not extended within its ttl of ${ttl} ms: release it in time, or pass \`extend: true\` or a longer ttl`;
      expect(rig.losses.at(-1)).toMatchObject({ cause: 'expired', answers: [], message });
    }
    expect(rig.losses).toHaveLength(2);
    expect(dangers).toEqual([]);
  });

  it('says that the process stood still if that kept it from extending the lock', async () => {
    const { rig } = observe();
    const lock = await rig.lock('a', { ttl: SHORT_TTL, extend: true });
    rig.clock.stall(SHORT_TTL);
    expect(() => lock.assertHeld()).toThrow(LockLostError);
    expect(rig.losses[0]?.message).toBe(
      'lost the lock on "a": this process was blocked or suspended, and did not extend it within its ttl of 9000 ms',
    );
  });

  it('forgets the replies to extensions from before one that succeeded', async () => {
    const { rig } = observe();
    await rig.lock('a', { ttl: SHORT_TTL, extend: true });
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(5_000);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(1_500);
    rig.clock.stall(SHORT_TTL);
    await rig.clock.advance(0);
    expect(rig.losses[0]).toMatchObject({ cause: 'expired', answers: [] });
  });
});
