// The schedules of test/unit/core/fencing-counterexamples.spec.ts, with processes on real servers. The wrong protocols
// fail outside the model too, and the checks that the right protocol passes detect it.
import { Keyspace } from '../../lib/core/keyspace.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { countersOf } from '../../lib/core/fencing.js';
import { resolveSettings } from '../../lib/core/settings/settings.js';
import type { FenceTask, Section } from '../processes/fence.js';
import { command } from '../support/command.js';
import { type Compiled, compileLibrary, type Program, start } from '../support/compiled.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Register } from '../support/register.js';
import { disorderOf, duplicatesOf } from '../support/sections.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import type { Protocol } from '../support/wrong-protocols.js';

const KEY = 'hot';
const SETTINGS = resolveSettings({});
/**
 * A schedule must end before the locks do, however slow the machine is. A process that is refused its token asks again
 * until then. The guard is off because these masters have just started.
 */
const OPTIONS = { ttl: 8_000, masterTimeout: 2_000, restartGuard: false };
const [A, B, C] = [0, 1, 2];
const [FIRST, SECOND] = [1, 2];

let compiled: Compiled;
let masters: Masters;
let ways: Readonly<Record<number, readonly TcpProxy[]>>;
let register: Register;
let programs: Program[];
let base: number;

beforeAll(async () => {
  compiled = await compileLibrary();
  masters = await startMasters(3);
});
afterAll(async () => {
  await masters.stop();
  await compiled[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await Promise.all(masters.servers.map(({ port }) => command(port, 'FLUSHALL')));
  ways = { [FIRST]: await proxies(), [SECOND]: await proxies() };
  register = await Register.open();
  programs = [];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  await Promise.all(programs.map(({ ended }) => ended));
  await Promise.all(
    Object.values(ways)
      .flat()
      .map((way) => way.close()),
  );
  await register[Symbol.asyncDispose]();
});

/** Starts both processes, and sets the masters' counters far ahead of every clock. */
async function begin(protocol: Protocol, counters: readonly number[]): Promise<void> {
  base = Date.now() * 1_000 + 30_000_000;
  const hash = new Keyspace(SETTINGS.keyPrefix).counters;
  const [counter = 0] = countersOf([SETTINGS.keyPrefix + KEY]);
  await Promise.all(
    counters.map((before, index) =>
      command(masters.servers[index]!.port, 'HSET', hash, String(counter), String(base + before)),
    ),
  );
  const common = { keys: [KEY], options: OPTIONS, register: register.port, milliseconds: 0, ahead: 0, protocol };
  for (const id of [FIRST, SECOND]) {
    const urls = ways[id]!.map(({ url }) => url);
    const task: FenceTask = { ...common, id, urls, steered: true };
    programs.push(start(compiled, 'fence', task));
  }
  await Promise.all([register.ready(FIRST), register.ready(SECOND)]);
}

/** Lets a process make one step, and waits until the step is done. */
async function step(id: number): Promise<void> {
  register.go(id);
  await Promise.race([register.ready(id), programs[id - 1]!.ended]);
}

/** Deletes a lock, as an eviction or a clock jump of the master does. */
async function expire(index: number): Promise<void> {
  expect(await command(masters.servers[index]!.port, 'DEL', SETTINGS.keyPrefix + KEY)).toBe(1);
}

/**
 * Lets both processes make their pending writes. Tokens are in the order of the processes; `undefined` means no token.
 */
async function end(): Promise<readonly Section[]> {
  await step(SECOND);
  await step(FIRST);
  expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual([0, 0]);
  return register.sections;
}

async function scriptsRun(index: number): Promise<number> {
  const stats = String(await command(masters.servers[index]!.port, 'INFO', 'commandstats'));
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

function tokens(): number[] {
  return register.sections.map(({ token }) => token - base);
}

describe('Drawing a token for any holder, even if the key belongs to another one', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 0, 0]);
    const [first, second] = [ways[FIRST]!, ways[SECOND]!];
    first[C]!.requests.hold();
    await step(FIRST);
    // B forgets the lock too early, so the locks will overlap.
    await expire(B);
    await step(SECOND);
    first[A]!.requests.hold();
    second[A]!.requests.hold();
    second[C]!.requests.hold();
    // Both processes have asked B. Then A answers only the first process, and C only the second.
    const asked = [];
    for (const id of [FIRST, SECOND]) {
      const before = await scriptsRun(B);
      asked.push(step(id));
      await eventually(async () => (await scriptsRun(B)) > before);
    }
    first[A]!.requests.pass();
    if (protocol !== 'right') await asked[0];
    second[C]!.requests.pass();
    await asked[1];
    return end();
  }

  it('gives out the same token twice, so that the resource cannot distinguish the writes', async () => {
    const sections = await play('for any holder');
    expect(tokens()).toEqual([5, 5]);
    expect(duplicatesOf(sections)).toHaveLength(1);
    expect(register.staleAccepted).toEqual([base + 5]);
  });

  it('is refused by masters that check the key', async () => {
    const sections = await play('right');
    expect(tokens()).toHaveLength(1);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  });
});

describe('Confirming a token without adopting larger answers', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 2, 4]);
    const first = ways[FIRST]!;
    first[C]!.requests.hold();
    await step(FIRST);
    // B forgets the lock too early, so the locks will overlap.
    await expire(B);
    // The second process receives 3 and 5, and confirms 5.
    await step(SECOND);
    await step(SECOND);
    await expire(C);
    // In the first round, the first process receives only 5, from A. It confirms 5 in the second round.
    const before = await scriptsRun(A);
    const asked = step(FIRST);
    await eventually(async () => (await scriptsRun(A)) >= before + 2);
    // The request that the first process sent to C at the beginning arrives now. C has reached 6 or more.
    first[C]!.requests.pass();
    await asked;
    return end();
  }

  it('gives out the same token twice, so that the resource cannot distinguish the writes', async () => {
    const sections = await play('without adopting');
    expect(tokens()).toEqual([5, 5]);
    expect(duplicatesOf(sections)).toHaveLength(1);
    expect(register.staleAccepted).toEqual([base + 5]);
  });

  it('gives out no token twice when another round confirms the larger answer', async () => {
    const sections = await play('right');
    const [second, first] = tokens();
    expect(second).toBe(5);
    expect(first).toBeGreaterThan(5);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(disorderOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  });
});

function proxies(): Promise<TcpProxy[]> {
  return Promise.all(masters.servers.map(({ port }) => TcpProxy.to(port)));
}
