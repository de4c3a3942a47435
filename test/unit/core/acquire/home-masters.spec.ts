import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../../../lib/runtime/system-clock.js';
import { HomeMasters } from '../../../../lib/core/acquire/home-masters.js';
import { CircuitBreakerMaster } from '../../../../lib/core/health/circuit-breaker-master.js';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../../lib/memory/memory-master.js';

function rig(count: number) {
  return rigOf(Array.from({ length: count }, (_, i) => `m${i}`));
}

function rigOf(names: readonly string[]) {
  const clock = new ManualClock();
  const masters = names.map((name) => new MemoryMaster(clock, name));
  const watched = masters.map((master) => new CircuitBreakerMaster(master, new SystemClock(), 50, {}, () => undefined));
  return { clock, masters, watched, homeMasters: new HomeMasters(watched, clock) };
}

/** The number of keys of which each master is the home master, out of 5,000. */
function sharesOf(homeMasters: HomeMasters, masters: number): Map<string, number> {
  const shares = new Map<string, number>();
  for (let i = 0; i < 5_000; i++) {
    const name = homeMasters.of(`order:${i}`)?.name ?? 'none';
    shares.set(name, (shares.get(name) ?? 0) + 1);
  }
  expect(shares.size).toBe(masters);
  return shares;
}

// Protocol 5.3
describe('The home master of a key', () => {
  it('is the same for all processes', () => {
    const here = rig(5);
    const there = rig(5);
    for (let i = 0; i < 100; i++) {
      expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
    }
  });

  it('is the same master for processes that list the masters in another order', () => {
    const names = ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379', '10.0.0.5:6379'];
    const here = rigOf(names);
    const there = rigOf(['10.0.0.4:6379', '10.0.0.1:6379', '10.0.0.5:6379', '10.0.0.3:6379', '10.0.0.2:6379']);
    for (let i = 0; i < 100; i++) {
      expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
    }
    for (const name of ['10.0.0.2:6379', '10.0.0.5:6379']) {
      for (const { masters } of [here, there]) masters.find((master) => master.name === name)?.takeDown();
      for (let i = 0; i < 100; i++) {
        expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
      }
    }
  });

  it('differs between keys, so that the load is spread', () => {
    const { homeMasters } = rig(5);
    for (const share of sharesOf(homeMasters, 5).values()) expect(share).toBeGreaterThan(850);
  });

  it('moves to all remaining masters alike when a master is down', () => {
    const { homeMasters, masters } = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    masters[1]?.takeDown();
    for (const share of sharesOf(homeMasters, 3).values()) expect(share).toBeGreaterThan(1_450);
  });

  it('stays where it is when a master is added, unless it moves to the new one', () => {
    const before = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379']);
    const after = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    for (let i = 0; i < 1_000; i++) {
      const name = after.homeMasters.of(`order:${i}`)?.name;
      expect([before.homeMasters.of(`order:${i}`)?.name, '10.0.0.4:6379']).toContain(name);
    }
  });

  it('is the next usable master while one is down, and the same as before when it is back', () => {
    const { homeMasters, masters } = rig(3);
    const before = homeMasters.of('key');
    const master = masters.find(({ name }) => name === before?.name);
    master?.takeDown();
    const meanwhile = homeMasters.of('key');
    expect(meanwhile).toBeDefined();
    expect(meanwhile).not.toBe(before);
    master?.bringUp();
    expect(homeMasters.of('key')).toBe(before);
  });

  it('does not exist when no master is usable', () => {
    const { homeMasters, masters } = rig(3);
    for (const master of masters) master.takeDown();
    expect(homeMasters.of('key')).toBeUndefined();
  });
});

describe('A crowd', () => {
  it('is remembered for a second', async () => {
    const { homeMasters, clock } = rig(3);
    homeMasters.noteContention(['a', 'b']);
    expect(homeMasters.areContended(['x', 'b'])).toBe(true);
    await clock.advance(999);
    expect(homeMasters.areContended(['a'])).toBe(true);
    await clock.advance(1);
    expect(homeMasters.areContended(['a'])).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is remembered from its last sign on', async () => {
    const { homeMasters, clock } = rig(3);
    homeMasters.noteContention(['a', 'b']);
    await clock.advance(900);
    homeMasters.noteContention(['a']);
    await clock.advance(900);
    expect(homeMasters.areContended(['a'])).toBe(true);
    expect(homeMasters.areContended(['b'])).toBe(false);
  });
});
