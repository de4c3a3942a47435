import { expect, it } from '@jest/globals';
import { type LockService, type WithLockOptions } from 'nestjs-redlock';
import { ManualClock, memoryLockService } from 'nestjs-redlock/testing';
import { Chance } from '../../simulation/engine/chance.js';
import { shareOf } from '../../support/share.js';

/** What one call takes, and the calls inside of it. */
interface Call {
  readonly resources: readonly string[];
  readonly options: WithLockOptions;
  /** Milliseconds before it asks, and while it holds. */
  readonly pauses: readonly [number, number];
  readonly inner: readonly Call[];
}

const PERMITS = 2;
/** Longer than all calls take one after the other. */
const WAIT = '300s';

/** Chains that take resources in one order, some several at a time, and some in branches. */
function generateChains(chance: Chance): readonly Call[] {
  const order = ['a', 'b', 'c', 'd', 'e'].sort(() => chance.pick([-1, 1]));
  const sharing = chance.pick([0, 0.3, 0.6]);
  const longest = chance.pick([4, 40, 400, 1_500]);
  const generate = (from: number, depth: number): readonly Call[] => {
    const at = from + chance.whole(0, 2);
    const resource = order[at];
    if (resource === undefined || depth > 3) return [];
    const pauses = [chance.whole(0, longest), chance.whole(0, longest)] as const;
    const wait = depth === 0 && chance.happens(0.15) ? 0 : WAIT;
    if (chance.happens(0.1)) {
      return [
        { resources: [resource], options: { wait, permits: PERMITS }, pauses, inner: generate(at + 1, depth + 1) },
      ];
    }
    const resources = [resource, ...order.slice(at + 1).filter(() => chance.happens(0.3))];
    const next = order.indexOf(resources.at(-1) as string) + 1;
    const branches = chance.happens(0.25) ? [1, 2] : [1];
    const inner = branches.flatMap(() => generate(next, depth + 1));
    return [{ resources, options: { wait, mode: chance.happens(sharing) ? 'shared' : 'exclusive' }, pauses, inner }];
  };
  return Array.from({ length: chance.whole(3, 10) }, () => generate(0, 0)).flat();
}

type Pause = (milliseconds: number) => Promise<void>;

async function run(locks: LockService, call: Call, pause: Pause): Promise<string> {
  const [before, during] = call.pauses;
  await pause(before);
  return locks.withLock(call.resources, call.options, async () => {
    await Promise.all(call.inner.map((inner) => run(locks, inner, pause)));
    await pause(during);
    return 'ran';
  });
}

function stage() {
  const clock = new ManualClock();
  const locks = memoryLockService({ clock });
  const pause: Pause = (milliseconds) => new Promise((go) => void clock.schedule(milliseconds, () => go()));
  return { clock, locks, pause, turns: [] as string[] };
}
it.each([
  ['a', 'b'],
  ['b', 'a'],
])('A chain that holds %j takes %j before a call that waits for both', async (outer, inner) => {
  const { clock, locks, pause, turns } = stage();
  const chain = locks.withLock(outer, async () => {
    await pause(100);
    await locks.withLock(inner, { wait: WAIT }, () => void turns.push('nested'));
  });
  await clock.advance(50);
  const both = locks.withLock(['a', 'b'], { wait: WAIT }, () => void turns.push('both'));
  await clock.advance(100);
  await Promise.all([chain, both]);
  expect(turns).toEqual(['nested', 'both']);
});

it('Chains that take locks in one order all run, whatever they take together and inside of each other', async () => {
  for (let seed = 0; seed < shareOf(300); seed++) {
    const chance = new Chance(seed);
    const chains = generateChains(chance);
    const { clock, locks, pause } = stage();
    const outcomes = chains.map((chain) =>
      run(locks, chain, pause).catch((error: unknown) => (chain.options.wait === 0 ? 'ran' : error)),
    );
    await clock.advance(120_000);
    const pending = new Promise((resolve) => void setImmediate(() => resolve('waits')));
    const ends = await Promise.all(outcomes.map((outcome) => Promise.race([outcome, pending])));
    expect({ seed, chains, ends }).toEqual({ seed, chains, ends: chains.map(() => 'ran') });
  }
});

it('A call waits for the nested calls of the chain before it, and for none of a chain that comes later', async () => {
  const { clock, locks, pause, turns } = stage();
  const run = (name: string): Promise<void> =>
    locks.withLock('a', { wait: WAIT }, async () => {
      for (let call = 0; call < 3; call++) {
        await pause(10);
        await locks.withLock('b', { wait: WAIT }, () => void turns.push(name));
      }
    });
  const chains = [run('first')];
  await clock.advance(5);
  const both = locks.withLock(['a', 'b'], { wait: WAIT }, () => void turns.push('both'));
  chains.push(run('second'));
  await clock.advance(100);
  await Promise.all([both, ...chains]);
  expect(turns).toEqual(['first', 'first', 'first', 'both', 'second', 'second', 'second']);
});

it('A call that outlives the lock around it waits in its turn', async () => {
  const { clock, locks, pause, turns } = stage();
  let late: Promise<void> | undefined;
  await locks.withLock('a', () => {
    late = pause(10).then(() => locks.withLock('b', { wait: WAIT }, () => void turns.push('late')));
  });
  const holder = locks.withLock('a', () => pause(20));
  const both = locks.withLock(['a', 'b'], { wait: WAIT }, () => void turns.push('both'));
  await clock.advance(50);
  await Promise.all([holder, both, late]);
  expect(turns).toEqual(['both', 'late']);
});

it('A call for several resources waits in its turn among nested calls of other chains', async () => {
  const { clock, locks, pause } = stage();
  let isOver = false;
  let passed = 0;
  const chains = ['c', 'd', 'e'].map(async (outer) => {
    while (!isOver) {
      await locks.withLock(outer, { wait: WAIT }, () =>
        locks.withLock('b', { wait: WAIT }, async () => {
          passed++;
          await pause(10);
        }),
      );
    }
  });
  await clock.advance(50);
  const before = passed;
  const both = locks.withLock(['a', 'b'], { wait: WAIT }, () => {
    isOver = true;
    return passed - before;
  });
  await clock.advance(5_000);
  expect(isOver).toBe(true);
  await Promise.all(chains);
  expect(await both).toBeLessThanOrEqual(3);
});

it.each([
  ['of its process that want the same lock all the time', 20, 'b'],
  ['for several resources that do not wait for its chain', 3, ['a', 'b']],
])('A nested call gets its turn among calls %s', async (_, count, resources) => {
  const { clock, locks, pause } = stage();
  let isOver = false;
  let served = 0;
  const calls = Array.from({ length: count }, async () => {
    while (!isOver) {
      await locks.withLock(resources, { wait: WAIT }, async () => {
        served++;
        await pause(10);
      });
    }
  });
  await clock.advance(50);
  const before = served;
  const nested = locks.withLock('c', () =>
    locks.withLock('b', { wait: WAIT }, () => {
      isOver = true;
      return served - before;
    }),
  );
  await clock.advance(5_000);
  expect(isOver).toBe(true);
  await Promise.all(calls);
  expect(await nested).toBeLessThanOrEqual(3);
});

it('Nested calls for the same lock all get it, although one of them gives up', async () => {
  const { clock, locks, pause, turns } = stage();
  const holder = locks.withLock('b', () => pause(1_000));
  const chains = (['100ms', WAIT, WAIT] as const).map((wait, index) =>
    locks.withLock(`chain:${index}`, () =>
      locks.withLock('b', { wait }, () => void turns.push(`${index}`)).catch(() => void turns.push('none')),
    ),
  );
  await clock.advance(1_000);
  await clock.advance(10);
  expect(turns).toEqual(['none', '1', '2']);
  await Promise.all([holder, ...chains]);
});

it('A shared nested call does not wait for shared calls that wait for its chain', async () => {
  const { clock, locks, pause, turns } = stage();
  const shared = { mode: 'shared', wait: WAIT } as const;
  const chain = locks.withLock('b', async () => {
    await pause(20);
    const writer = locks.withLock('a', () => pause(100));
    await pause(10);
    await Promise.all([writer, locks.withLock('a', shared, () => void turns.push('reader'))]);
  });
  await clock.advance(10);
  const both = (): Promise<void> => locks.withLock(['a', 'b'], shared, () => void turns.push('both'));
  const calls = [both(), both()];
  await clock.advance(1_000);
  await Promise.all([chain, ...calls]);
  expect(turns).toEqual(['reader', 'both', 'both']);
});

it('A nested call does not wait for a call that waits for its chain through two others', async () => {
  const { clock, locks, turns, pause } = stage();
  const chain = (outer: string, inner: string, after: number): Promise<unknown> =>
    locks.withLock(outer, { wait: WAIT }, async () => {
      await pause(after);
      await locks.withLock(inner, { wait: WAIT }, () => void turns.push(outer));
    });
  const chains = [chain('a', 'b', 40), chain('b', 'c', 30), chain('c', 'd', 20)];
  await clock.advance(10);
  const both = locks.withLock(['a', 'd'], { wait: WAIT }, () => void turns.push('both'));
  await clock.advance(100);
  await Promise.all([...chains, both]);
  expect(turns).toEqual(['c', 'b', 'a', 'both']);
});

it('A shared nested call runs beside the shared holder although an exclusive call waits for its chain', async () => {
  const { clock, locks, turns, pause } = stage();
  const shared = { wait: WAIT, mode: 'shared' } as const;
  const holders = [locks.withLock('a', shared, () => pause(6_000)), locks.withLock('b', () => pause(5_000))];
  await clock.advance(1);
  const reader = locks.withLock(['a', 'b'], shared, () => void turns.push('reader'));
  const chain = locks.withLock('c', async () => {
    await pause(20);
    await locks.withLock('a', shared, () => void turns.push('nested'));
  });
  await clock.advance(1);
  const writer = locks.withLock(['a', 'c'], { wait: WAIT }, () => void turns.push('writer'));
  await clock.advance(10_000);
  await Promise.all([...holders, reader, chain, writer]);
  expect(turns).toEqual(['nested', 'reader', 'writer']);
});

it.each<[string, (run: number) => string, WithLockOptions, number]>([
  ['its lock', (run) => `run:${run}`, {}, 1],
  ['its lock, which is lost', (run) => `run:${run}`, { ttl: 100, maxHold: 100 }, 1],
  ['the lock of all runs', () => 'run', { reentrant: true }, 1],
  ['the lock of all runs, in another one', () => 'run', { reentrant: true }, 2],
])('Work that begins its next run inside of %s keeps no earlier runs', async (_, key, options, overlapping) => {
  const { clock, locks, pause } = stage();
  const depths: number[] = [];
  const runs = 60;
  const run = (): Promise<unknown> =>
    locks
      .withLock(key(depths.length), { ...options, wait: WAIT }, async () => {
        let depth = 0;
        for (let scope = locks['context'].innermost; scope; scope = scope.outer) depth++;
        depths.push(depth);
        if (depths.length < runs) void pause(1_000).then(run);
        await pause(overlapping * 1_000 + 100);
      })
      .catch(() => undefined);
  const all = overlapping > 1 ? locks.withLock('outer', async () => (await run(), pause(runs * 1_000))) : run();
  await clock.advance(runs * 1_100);
  await all;
  expect(depths).toHaveLength(runs);
  expect(Math.max(...depths)).toBeLessThan(12);
});
