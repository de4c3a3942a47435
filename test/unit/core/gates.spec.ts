import { describe, expect, it } from '@jest/globals';
import { SystemClock } from '../../../lib/core/clock.js';
import { Gates } from '../../../lib/core/gates.js';
import { WatchedMaster } from '../../../lib/core/watched-master.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';

function rig(count: number) {
  const clock = new ManualClock();
  const masters = Array.from({ length: count }, (_, i) => new MemoryMaster(clock, `m${i}`));
  const watched = masters.map((master) => new WatchedMaster(master, new SystemClock(), 50, {}, () => undefined));
  return { clock, masters, watched, gates: new Gates(watched, clock) };
}

describe('the gate of a key', () => {
  it('is the same for everybody', () => {
    const here = rig(5);
    const there = rig(5);
    for (let i = 0; i < 100; i++) {
      expect(here.gates.gateOf(`key ${i}`)?.name).toBe(there.gates.gateOf(`key ${i}`)?.name);
    }
  });

  it('differs from key to key, so that the load is spread', () => {
    const { gates } = rig(5);
    const shares = new Map<string, number>();
    for (let i = 0; i < 5_000; i++) {
      const name = gates.gateOf(`order:${i}`)?.name ?? 'none';
      shares.set(name, (shares.get(name) ?? 0) + 1);
    }
    expect(shares.size).toBe(5);
    for (const share of shares.values()) expect(share).toBeGreaterThan(800);
  });

  it('is the next usable master when one is down, and the same again when it is back', () => {
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

describe('a crowd', () => {
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
