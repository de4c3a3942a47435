import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MasterReport } from '../../../lib/core/errors.js';
import { MachineClock } from '../support/machine-clock.js';
import { Rig } from '../support/rig.js';
import { hangs, only, refused, says, tellsAfter, unreachable } from '../support/scripted-master.js';

const TTL = 10_000;
const DRIFT = 102;
const HOUR = 3_600_000;

let rig: Rig;
let clock: MachineClock;
/** What an observer does when a lock is granted. */
let granted: () => void;

/** A process on a machine with clocks of its own. */
function machine(masters = 3): void {
  granted = () => undefined;
  const observer = { acquiring: () => ({ granted: () => granted() }) };
  rig = new Rig({ masters, ttl: TTL, observer, clockOf: (others) => (clock = new MachineClock(others)) });
}

beforeEach(() => machine());

/** Its wall clock is set, which the machine notices at once. */
async function notices(step: number): Promise<void> {
  clock.ahead += step;
  clock.notice();
  await rig.clock.settle();
}

const EXTENDED = { extend: true };

// Protocol 3.4
describe('A lock whose wall clock is set forward before its work begins', () => {
  it('is handed out once the masters have resolved the doubt, and is not acquired anew', async () => {
    granted = () => (clock.ahead += HOUR);
    const lock = await rig.lock('a', EXTENDED);
    expect(lock.isHeld).toBe(true);
    expect(rig.counts('acquire')).toEqual([1, 1, 1]);
    await lock.release();
    await rig.clock.advance(2 * TTL);
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.losses).toEqual([]);
  });

  it('is given up at once if the signal of the call aborts meanwhile', async () => {
    const stop = new AbortController();
    const enough = new Error('enough');
    granted = () => {
      clock.ahead += HOUR;
      rig.scriptAll(only('extend', tellsAfter(100)));
    };
    const lock = rig.acquire('a', { extend: true, signal: stop.signal }).catch((error: unknown) => error);
    await rig.clock.settle();
    stop.abort(enough);
    expect(await lock).toBe(enough);
    expect(rig.clock.now).toBe(0);
    await rig.clock.advance(2 * TTL);
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});

describe('A lock whose wall clock is set forward', () => {
  it.each([
    ['by 15 s', 15_000, 3],
    ['by an hour', HOUR, 3],
    ['by an hour, on one master', HOUR, 1],
    ['by 50 ms', 50, 3],
  ])('lasts, once the masters have answered that they still have it: %s', async (_, by, masters) => {
    machine(masters);
    const lock = await rig.lock('a', EXTENDED);
    await rig.clock.advance(1_000);
    clock.ahead += by;
    expect([lock.isHeld, lock.remaining(), lock.loss, lock.signal.aborted]).toEqual([false, 0, undefined, false]);
    expect(() => lock.assertHeld()).toThrow(/suspended, or its wall clock was set forward, by \d+ ms, and the masters/);
    await rig.clock.settle();
    expect([lock.isHeld, lock.remaining(), rig.losses]).toEqual([true, TTL - DRIFT, []]);
    await rig.clock.advance(60_000);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(rig.keys).toEqual(rig.masters.map(() => 0));
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it.each([
    ['a shared lock', { extend: true, mode: 'shared' as const }, ['a']],
    ['a permit', { extend: true, permits: 2 }, ['a']],
    ['a lock on several resources', { extend: true }, ['a', 'b', 'c']],
    ['a lock with maxHold', { extend: true, maxHold: 60_000 }, ['a']],
  ])('lasts: %s', async (_, options, names) => {
    const lock = await rig.lock(names, options);
    await notices(HOUR);
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('lasts for as long as before if it is not extended', async () => {
    const lock = await rig.lock('a');
    await rig.clock.advance(4_000);
    await notices(15_000);
    expect(lock.remaining()).toBe(TTL - DRIFT - 4_000);
    await rig.clock.advance(TTL - DRIFT - 4_000);
    expect([lock.isHeld, lock.signal.aborted]).toEqual([false, true]);
  });

  it('lasts through many small steps', async () => {
    const lock = await rig.lock('a', EXTENDED);
    for (let step = 0; step < 100; step++) {
      clock.ahead += step % 2 === 0 ? 190 : 9;
      clock.notice();
      await rig.clock.advance(40);
    }
    expect([lock.isHeld, rig.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('is lost if too few masters answer in time', async () => {
    const lock = await rig.lock('a', EXTENDED);
    for (const master of rig.masters.slice(1)) master.behaviour = only('extend', hangs);
    clock.ahead += 15_000;
    clock.notice();
    await rig.clock.advance(49);
    expect([lock.isHeld, lock.signal.aborted]).toEqual([false, false]);
    await rig.clock.advance(1);
    expect(rig.losses.map(({ cause }) => cause)).toEqual(['expired']);
    expect(rig.losses[0]?.message).toMatch(/was suspended, or its wall clock was set forward, by 15000 ms/);
  });

  it('is lost if a master has set its keys again', async () => {
    const lock = await rig.lock('a', EXTENDED);
    for (const master of rig.masters.slice(1)) master.memory.flush();
    clock.ahead += 15_000;
    expect(lock.isHeld).toBe(false);
    await rig.clock.settle();
    expect(rig.losses).toHaveLength(1);
  });

  it('is released once the masters have answered, and not reported as lost', async () => {
    const lock = await rig.lock('a', EXTENDED);
    clock.ahead += 15_000;
    const released = lock.release();
    await rig.clock.settle();
    await released;
    expect([rig.losses, rig.keys]).toEqual([[], [0, 0, 0]]);
  });

  it('is extended by its holder and has a token, once the masters have answered', async () => {
    const lock = await rig.lock('a', EXTENDED);
    clock.ahead += 15_000;
    const all = Promise.all([lock.extend(5_000), lock.fencingToken()]);
    await rig.clock.settle();
    await expect(all).resolves.toHaveLength(2);
    await lock.release();
  });

  it('is granted although that happens while the masters are asked', async () => {
    rig.scriptAll(only('acquire', tellsAfter(10)));
    const acquiring = rig.acquire('a', { wait: 0 });
    await rig.clock.advance(5);
    clock.ahead += HOUR;
    await rig.clock.advance(5);
    const lock = await acquiring;
    expect([lock.isHeld, lock.remaining()]).toEqual([true, TTL - DRIFT - 10]);
    await lock.release();
  });
});

describe('A lock whose machine was suspended', () => {
  it.each([
    ['for longer than its ttl', 0],
    ['after its wall clock was set back', -HOUR],
    ['after its wall clock was set forward', HOUR],
  ])('is lost: %s', async (_, step) => {
    const lock = await rig.lock('a', EXTENDED);
    await notices(step);
    clock.suspend(11_000);
    clock.notice();
    expect(lock.isHeld).toBe(false);
    await rig.clock.settle();
    expect(rig.losses.map(({ message }) => message)).toEqual([
      expect.stringMatching(/this process was suspended, or its wall clock was set forward, by 11000 ms/),
    ]);
  });

  it('is not believed again after another process had it meanwhile', async () => {
    const lock = await rig.lock('a', EXTENDED);
    clock.suspend(11_000);
    const other = await rig.peer().acquire('a', { ttl: TTL });
    await other.release();
    expect(lock.isHeld).toBe(false);
    await rig.clock.settle();
    expect([lock.isHeld, rig.losses.length]).toEqual([false, 1]);
  });

  it('lasts if the masters still have it', async () => {
    const lock = await rig.lock('a', EXTENDED);
    clock.suspend(5_000);
    expect(lock.isHeld).toBe(false);
    await rig.clock.settle();
    expect([lock.isHeld, lock.remaining(), rig.losses]).toEqual([true, TTL - DRIFT, []]);
    await lock.release();
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
    expect(lock.isHeld).toBe(false);
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
