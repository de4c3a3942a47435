import { expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { shareOf } from '../../support/share.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { Rig } from '../support/rig.js';
import type { Behaviour } from '../support/scripted-master.js';

const PROCESSES = 3;
const RESOURCES = ['a', 'b'];
const DURATION = 1_500;

type Chance = () => number;

/** A network that is slow at random and hangs now and then, but keeps the order of requests and of answers. */
function unreliable(chance: Chance): Behaviour {
  let lastArrival = 0;
  let lastAnswer = 0;
  return (request, reply, { clock, memory }) => {
    const hang = chance() < 0.03 ? chance() * 400 : 0;
    lastArrival = Math.max(lastArrival, clock.now + chance() * 15 + hang);
    clock.schedule(lastArrival - clock.now, () => {
      memory.ask(request, (answer) => {
        lastAnswer = Math.max(lastAnswer, clock.now + chance() * 15);
        clock.schedule(lastAnswer - clock.now, () => reply(answer));
      });
    });
  };
}

/** A small, fast generator with a seed (mulberry32). */
function seeded(seed: number): Chance {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function work(rig: Rig, chance: Chance, locks: Set<Lock>, turns: { count: number }): Promise<void> {
  const sleep = (milliseconds: number) => new Promise<void>((resolve) => rig.clock.schedule(milliseconds, resolve));
  while (rig.clock.now < DURATION) {
    const resources = chance() < 0.2 ? RESOURCES : [chance() < 0.5 ? 'a' : 'b'];
    const request = { ttl: 120, wait: Math.floor(chance() * 300), extend: chance() < 0.5 };
    try {
      const lock = await rig.acquire(resources, request);
      locks.add(lock);
      turns.count++;
      await sleep(chance() * 200);
      if (chance() < 0.2) await lock.extend(chance() < 0.5 ? 60 : 240).catch(() => undefined);
      await sleep(chance() * 50);
      await lock.release();
      locks.delete(lock);
    } catch {
      await sleep(1 + chance() * 20);
    }
  }
}

it('Mutual exclusion holds with masters that are slow, hang and answer late', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 5 }), async (seed, masters) => {
      const chance = seeded(seed);
      const rig = new Rig({ masters });
      for (const master of rig.masters) master.behaviour = unreliable(chance);
      const rigs = Array.from({ length: PROCESSES }, (_, i) => (i === 0 ? rig : rig.peer()));
      const locks = new Set<Lock>();
      const turns = { count: 0 };
      const workers = rigs.flatMap((each) => [work(each, chance, locks, turns), work(each, chance, locks, turns)]);
      for (let t = 0; t < DURATION; t++) {
        await rig.clock.advance(1);
        const held = [...locks].filter((lock) => lock.isHeld).flatMap((lock) => lock.resources);
        expect(held).toHaveLength(new Set(held).size);
      }
      await rig.clock.advance(2_000);
      await Promise.all(workers);
      expect(turns.count).toBeGreaterThan(0);
      expect([rig.keys, rig.clock.pendingTimers]).toEqual([rig.masters.map(() => 0), 0]);
    }),
    { numRuns: shareOf(15) },
  );
}, 60_000);
