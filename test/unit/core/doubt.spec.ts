import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Clock, Instant, Timer } from '../../../lib/core/clock.js';
import type { LockLostError, MasterReport } from '../../../lib/core/errors.js';
import type { Lock } from '../../../lib/core/lock.js';
import { Redlock } from '../../../lib/core/redlock.js';
import { resolveCall, resolveSettings } from '../../../lib/core/settings/settings.js';
import { Rig } from '../support/rig.js';
import { hangs, only, refused, says, ScriptedMaster, tellsAfter, unreachable } from '../support/scripted-master.js';
import { TestClock } from '../support/test-clock.js';

const TTL = 10_000;
const DRIFT = 102;
const HOUR = 3_600_000;

/** The clocks of a machine: its masters are on others, whose clocks stay right. */
class MachineClock implements Clock {
  private ahead = 0;
  private missed = 0;
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly others: TestClock) {}

  read(): Instant {
    const { monotonic, wall } = this.others.read();
    return { monotonic: monotonic - this.missed, wall: wall + this.ahead };
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.others.schedule(delay, callback);
  }

  afterInput(callback: () => void): void {
    this.others.afterInput(callback);
  }

  afterTurn(callback: () => void): void {
    this.others.afterTurn(callback);
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Sets the wall clock. */
  step(milliseconds: number): void {
    this.ahead += milliseconds;
  }

  /** The machine is suspended, or stunned and its wall clock then corrected. */
  suspend(milliseconds: number): void {
    this.others.stall(milliseconds);
    this.missed += milliseconds;
  }

  /** What the real clock does within a second. */
  notice(): void {
    for (const listener of this.listeners) listener();
  }
}

class Machine {
  readonly time = new TestClock();
  readonly clock = new MachineClock(this.time);
  readonly masters: readonly ScriptedMaster[];
  readonly redlock: Redlock;
  readonly losses: LockLostError[] = [];
  /** What an observer does when a lock is granted. */
  granted: () => void = () => undefined;
  private readonly settings = resolveSettings({ ttl: TTL });

  constructor(masters = 3) {
    this.masters = Array.from({ length: masters }, (_, i) => new ScriptedMaster(this.time, `m${i + 1}`));
    this.redlock = this.process();
  }

  /** One more process, on this machine or on another one. */
  process(clock: Clock = this.clock): Redlock {
    let tokens = 0;
    return new Redlock(this.masters, this.settings, {
      clock,
      random: { token: () => `secret-${clock === this.clock ? 'here' : 'there'}-${++tokens}`, fraction: () => 0.5 },
      observer: { lockLost: (error) => this.losses.push(error), acquiring: () => ({ granted: () => this.granted() }) },
    });
  }

  async lock(options: Parameters<typeof resolveCall>[1] = { extend: true }, names = ['a']): Promise<Lock> {
    const lock = this.redlock.acquire(names, resolveCall(this.settings, options));
    await this.time.settle();
    return lock;
  }

  /** Number of keys on each master. */
  get keys(): number[] {
    return this.masters.map(({ size }) => size);
  }

  /** Sets the wall clock, which the machine notices at once. */
  async notices(step: number): Promise<void> {
    this.clock.step(step);
    this.clock.notice();
    await this.time.settle();
  }
}

let machine: Machine;

beforeEach(() => void (machine = new Machine()));

// Protocol 3.4
describe('A lock whose wall clock is set forward before its work begins', () => {
  it('is handed out once the masters have resolved the doubt, and is not acquired anew', async () => {
    machine.granted = () => machine.clock.step(HOUR);
    const lock = await machine.lock();
    expect(lock.isHeld).toBe(true);
    expect(machine.masters.map((master) => master.requests('acquire').length)).toEqual([1, 1, 1]);
    await lock.release();
    await machine.time.advance(2 * TTL);
    expect(machine.keys).toEqual([0, 0, 0]);
    expect(machine.losses).toEqual([]);
  });

  it('is given up at once if the signal of the call aborts meanwhile', async () => {
    const stop = new AbortController();
    const enough = new Error('enough');
    machine.granted = () => {
      machine.clock.step(HOUR);
      for (const master of machine.masters) master.behaviour = only('extend', tellsAfter(100));
    };
    const lock = machine.lock({ extend: true, signal: stop.signal }).catch((error: unknown) => error);
    await machine.time.settle();
    stop.abort(enough);
    expect(await lock).toBe(enough);
    expect(machine.time.now).toBe(0);
    await machine.time.advance(2 * TTL);
    expect(machine.keys).toEqual([0, 0, 0]);
  });
});

describe('A lock whose wall clock is set forward', () => {
  it.each([
    ['by 15 s', 15_000, 3],
    ['by an hour', HOUR, 3],
    ['by an hour, on one master', HOUR, 1],
    ['by 50 ms', 50, 3],
  ])('lasts, once the masters have answered that they still have it: %s', async (_, by, masters) => {
    machine = new Machine(masters);
    const lock = await machine.lock();
    await machine.time.advance(1_000);
    machine.clock.step(by);
    expect([lock.isHeld, lock.remaining(), lock.loss, lock.signal.aborted]).toEqual([false, 0, undefined, false]);
    expect(() => lock.assertHeld()).toThrow(/suspended, or its wall clock was set forward, by \d+ ms, and the masters/);
    await machine.time.settle();
    expect([lock.isHeld, lock.remaining(), machine.losses]).toEqual([true, TTL - DRIFT, []]);
    await machine.time.advance(60_000);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(machine.keys).toEqual(machine.masters.map(() => 0));
    expect(machine.time.pendingTimers).toBe(0);
  });

  it.each([
    ['a shared lock', { extend: true, mode: 'shared' as const }, ['a']],
    ['a permit', { extend: true, permits: 2 }, ['a']],
    ['a lock on several resources', { extend: true }, ['a', 'b', 'c']],
    ['a lock with maxHold', { extend: true, maxHold: 60_000 }, ['a']],
  ])('lasts: %s', async (_, options, names) => {
    const lock = await machine.lock(options, names);
    await machine.notices(HOUR);
    expect([lock.isHeld, machine.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('lasts for as long as before if it is not extended', async () => {
    const lock = await machine.lock({ extend: false });
    await machine.time.advance(4_000);
    await machine.notices(15_000);
    expect(lock.remaining()).toBe(TTL - DRIFT - 4_000);
    await machine.time.advance(TTL - DRIFT - 4_000);
    expect([lock.isHeld, lock.signal.aborted]).toEqual([false, true]);
  });

  it('lasts through many small steps', async () => {
    const lock = await machine.lock();
    for (let step = 0; step < 100; step++) {
      machine.clock.step(step % 2 === 0 ? 190 : 9);
      machine.clock.notice();
      await machine.time.advance(40);
    }
    expect([lock.isHeld, machine.losses]).toEqual([true, []]);
    await lock.release();
  });

  it('is lost if too few masters answer in time', async () => {
    const lock = await machine.lock();
    for (const master of machine.masters.slice(1)) master.behaviour = only('extend', hangs);
    machine.clock.step(15_000);
    machine.clock.notice();
    await machine.time.advance(49);
    expect([lock.isHeld, lock.signal.aborted]).toEqual([false, false]);
    await machine.time.advance(1);
    expect(machine.losses.map(({ cause }) => cause)).toEqual(['expired']);
    expect(machine.losses[0]?.message).toMatch(/was suspended, or its wall clock was set forward, by 15000 ms/);
  });

  it('is lost if a master has set its keys again', async () => {
    const lock = await machine.lock();
    for (const master of machine.masters.slice(1)) master.memory.flush();
    machine.clock.step(15_000);
    expect(lock.isHeld).toBe(false);
    await machine.time.settle();
    expect(machine.losses).toHaveLength(1);
  });

  it('is released once the masters have answered, and not reported as lost', async () => {
    const lock = await machine.lock();
    machine.clock.step(15_000);
    const released = lock.release();
    await machine.time.settle();
    await released;
    expect([machine.losses, machine.keys]).toEqual([[], [0, 0, 0]]);
  });

  it('is extended by its holder and has a token, once the masters have answered', async () => {
    const lock = await machine.lock();
    machine.clock.step(15_000);
    const all = Promise.all([lock.extend(5_000), lock.fencingToken()]);
    await machine.time.settle();
    await expect(all).resolves.toHaveLength(2);
    await lock.release();
  });

  it('is granted although that happens while the masters are asked', async () => {
    for (const master of machine.masters) master.behaviour = only('acquire', tellsAfter(10));
    const acquiring = machine.redlock.acquire(['a'], resolveCall(resolveSettings({ ttl: TTL }), { wait: 0 }));
    await machine.time.advance(5);
    machine.clock.step(HOUR);
    await machine.time.advance(5);
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
    const lock = await machine.lock();
    await machine.notices(step);
    machine.clock.suspend(11_000);
    machine.clock.notice();
    expect(lock.isHeld).toBe(false);
    await machine.time.settle();
    expect(machine.losses.map(({ message }) => message)).toEqual([
      expect.stringMatching(/this process was suspended, or its wall clock was set forward, by 11000 ms/),
    ]);
  });

  it('is not believed again after another process had it meanwhile', async () => {
    const lock = await machine.lock();
    machine.clock.suspend(11_000);
    const other = await machine.process(machine.time).acquire(['a'], resolveCall(resolveSettings({ ttl: TTL }), {}));
    await other.release();
    expect(lock.isHeld).toBe(false);
    await machine.time.settle();
    expect([lock.isHeld, machine.losses.length]).toEqual([false, 1]);
  });

  it('lasts if the masters still have it', async () => {
    const lock = await machine.lock();
    machine.clock.suspend(5_000);
    expect(lock.isHeld).toBe(false);
    await machine.time.settle();
    expect([lock.isHeld, lock.remaining(), machine.losses]).toEqual([true, TTL - DRIFT, []]);
    await lock.release();
  });
});

const SHORT_TTL = 9_000;

interface Danger {
  readonly resources: readonly string[];
  readonly remaining: number;
  readonly answers: readonly MasterReport[];
}

/** A rig, and the dangers that its locks were reported to be in. */
function observe(): { rig: Rig; dangers: Danger[] } {
  const dangers: Danger[] = [];
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

  it('says that it was not extended if nothing was to extend it, and blames no master', async () => {
    const { rig, dangers } = observe();
    await rig.lock('a', { ttl: SHORT_TTL });
    await rig.clock.advance(SHORT_TTL);
    expect(rig.losses).toEqual([expect.objectContaining({ cause: 'expired', answers: [] })]);
    expect(rig.losses[0]?.message).toBe(
      'lost the lock on "a": it was not extended within its ttl of 9000 ms: pass `extend: true`, or a longer ttl',
    );
    expect(dangers).toEqual([]);
  });

  it('says so of the ttl of the last extension', async () => {
    const { rig } = observe();
    const lock = await rig.lock('a', { ttl: SHORT_TTL });
    await lock.extend(4_000);
    await rig.clock.advance(SHORT_TTL);
    expect(rig.losses[0]?.message).toContain('it was not extended within its ttl of 4000 ms');
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
