import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../../lib/core/clock.js';
import { Gates } from '../../../lib/core/gates.js';
import { WatchedMaster } from '../../../lib/core/watched-master.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';

function rig(count: number) {
  return rigOf(Array.from({ length: count }, (_, i) => `m${i}`));
}

function rigOf(names: readonly string[]) {
  const clock = new ManualClock();
  const masters = names.map((name) => new MemoryMaster(clock, name));
  const watched = masters.map((master) => new WatchedMaster(master, new SystemClock(), 50, {}, () => undefined));
  return { clock, masters, watched, gates: new Gates(watched, clock) };
}

/** The number of keys of which each master is the gate, out of 5,000. */
function sharesOf(gates: Gates, masters: number): Map<string, number> {
  const shares = new Map<string, number>();
  for (let i = 0; i < 5_000; i++) {
    const name = gates.gateOf(`order:${i}`)?.name ?? 'none';
    shares.set(name, (shares.get(name) ?? 0) + 1);
  }
  expect(shares.size).toBe(masters);
  return shares;
}

describe('The gate of a key', () => {
  it('is the same for all processes', () => {
    const here = rig(5);
    const there = rig(5);
    for (let i = 0; i < 100; i++) {
      expect(here.gates.gateOf(`key ${i}`)?.name).toBe(there.gates.gateOf(`key ${i}`)?.name);
    }
  });

  it('is the same master for processes that list the masters in another order', () => {
    const names = ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379', '10.0.0.5:6379'];
    const here = rigOf(names);
    const there = rigOf(['10.0.0.4:6379', '10.0.0.1:6379', '10.0.0.5:6379', '10.0.0.3:6379', '10.0.0.2:6379']);
    for (let i = 0; i < 100; i++) {
      expect(here.gates.gateOf(`key ${i}`)?.name).toBe(there.gates.gateOf(`key ${i}`)?.name);
    }
    for (const name of ['10.0.0.2:6379', '10.0.0.5:6379']) {
      for (const { masters } of [here, there]) masters.find((master) => master.name === name)?.takeDown();
      for (let i = 0; i < 100; i++) {
        expect(here.gates.gateOf(`key ${i}`)?.name).toBe(there.gates.gateOf(`key ${i}`)?.name);
      }
    }
  });

  it('differs between keys, so that the load is spread', () => {
    const { gates } = rig(5);
    for (const share of sharesOf(gates, 5).values()) expect(share).toBeGreaterThan(850);
  });

  it('moves to all remaining masters alike when a master is down', () => {
    const { gates, masters } = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    masters[1]?.takeDown();
    for (const share of sharesOf(gates, 3).values()) expect(share).toBeGreaterThan(1_450);
  });

  it('stays where it is when a master is added, unless it moves to the new one', () => {
    const before = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379']);
    const after = rigOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    for (let i = 0; i < 1_000; i++) {
      const name = after.gates.gateOf(`order:${i}`)?.name;
      expect([before.gates.gateOf(`order:${i}`)?.name, '10.0.0.4:6379']).toContain(name);
    }
  });

  it('is the next usable master while one is down, and the same as before when it is back', () => {
    const { gates, masters } = rig(3);
    const before = gates.gateOf('key');
    const master = masters.find(({ name }) => name === before?.name);
    master?.takeDown();
    const meanwhile = gates.gateOf('key');
    expect(meanwhile).toBeDefined();
    expect(meanwhile).not.toBe(before);
    master?.bringUp();
    expect(gates.gateOf('key')).toBe(before);
  });

  it('does not exist when no master is usable', () => {
    const { gates, masters } = rig(3);
    for (const master of masters) master.takeDown();
    expect(gates.gateOf('key')).toBeUndefined();
  });
});

describe('A crowd', () => {
  it('is remembered for a second', async () => {
    const { gates, clock } = rig(3);
    gates.noteCrowd(['a', 'b']);
    expect(gates.areCrowded(['x', 'b'])).toBe(true);
    await clock.advance(999);
    expect(gates.areCrowded(['a'])).toBe(true);
    await clock.advance(1);
    expect(gates.areCrowded(['a'])).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is remembered from its last sign on', async () => {
    const { gates, clock } = rig(3);
    gates.noteCrowd(['a', 'b']);
    await clock.advance(900);
    gates.noteCrowd(['a']);
    await clock.advance(900);
    expect(gates.areCrowded(['a'])).toBe(true);
    expect(gates.areCrowded(['b'])).toBe(false);
  });
});
