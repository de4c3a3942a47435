// The schedules of test/unit/core/fencing-counterexamples.spec.ts, with processes on real servers: what the protocols do
// wrong is wrong outside of a model, too, and is seen by the checks that the right one passes.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { countersName, countersOf } from '../../lib/core/fencing.js';
import { resolveSettings } from '../../lib/core/settings.js';
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
 * A schedule has to be over before the locks end, however slow the machine; whoever is refused its token asks again until
 * then. Without the guard, since these masters have just been started.
 */
const OPTIONS = { ttl: 8_000, masterTimeout: 2_000, restartGuard: false };
const [A, B, C] = [0, 1, 2];
const [FIRST, SECOND] = [1, 2];

let compiled: Compiled;
let masters: Masters;
let ways: readonly TcpProxy[];
let register: Register;
let programs: Program[];
let base: number;

beforeAll(async () => {
  compiled = await compileLibrary();
  masters = await startMasters(3);
}, 30_000);
afterAll(async () => {
  await masters.stop();
  await compiled[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await Promise.all(masters.servers.map(({ port }) => command(port, 'FLUSHALL')));
  // The ways of the first process; the second one's are straight.
  ways = await Promise.all(masters.servers.map(({ port }) => TcpProxy.to(port)));
  register = await Register.open();
  programs = [];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  await Promise.all(programs.map(({ ended }) => ended));
  await Promise.all(ways.map((way) => way.close()));
  await register[Symbol.asyncDispose]();
});

/** Starts both processes, and gives the masters counters that are far ahead of every clock. */
async function begin(protocol: Protocol, counters: readonly number[]): Promise<void> {
  base = Date.now() * 1_000 + 30_000_000;
  const hash = countersName(SETTINGS);
  const { fields } = countersOf([SETTINGS.keyPrefix + KEY]);
  await Promise.all(
    counters.map((counter, index) =>
      command(masters.servers[index]!.port, 'HSET', hash, String(fields[0]), String(base + counter)),
    ),
  );
  const common = { keys: [KEY], options: OPTIONS, register: register.port, milliseconds: 0, ahead: 0, protocol };
  for (const id of [FIRST, SECOND]) {
    const urls = id === FIRST ? ways.map(({ url }) => url) : masters.urls;
    const task: FenceTask = { ...common, id, urls, steered: true };
    programs.push(start(compiled, 'fence', task));
  }
  await Promise.all([register.ready(FIRST), register.ready(SECOND)]);
}

/** Lets a process make a step, and waits until it is done. */
async function step(id: number): Promise<void> {
  register.go(id);
  await Promise.race([register.ready(id), programs[id - 1]!.ended]);
}

/** What an eviction, or a master whose clock jumps, does to a lock. */
async function expire(index: number): Promise<void> {
  expect(await command(masters.servers[index]!.port, 'DEL', SETTINGS.keyPrefix + KEY)).toBe(1);
}

/** Both write what they were about to write; tokens in the order of the processes, `undefined` where there was none. */
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

describe('Writing a token back to any majority, whoever holds the key there', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 0, 0]);
    ways[C]!.requests.hold();
    // The first holder is told 5 and 1, and has to confirm 5. B forgets it too early: the locks will overlap.
    await step(FIRST);
    await expire(B);
    // The second one is told 2 and 1, and nobody has heard of the first one's 5 yet.
    await step(SECOND);
    // The first one has been cut off from the only master but A that still knows it.
    ways[A]!.requests.hold();
    const before = [await scriptsRun(B), await scriptsRun(C)];
    ways[C]!.requests.pass();
    const first = step(FIRST);
    // At C, that comes after what was asked of it at the beginning.
    await eventually(async () => (await scriptsRun(B)) >= before[0]! + 1 && (await scriptsRun(C)) >= before[1]! + 2);
    // Whoever is refused asks again until its lock ends: nobody waits for that.
    if (protocol !== 'right') await first;
    await step(SECOND);
    return end();
  }

  it('gives out the same token twice, and the resource cannot tell the writes apart', async () => {
    const sections = await play('to any majority');
    expect(tokens()).toEqual([5, 5]);
    expect(duplicatesOf(sections)).toHaveLength(1);
    expect(register.staleAccepted).toEqual([base + 5]);
  }, 30_000);

  it('is refused by masters that look at the key', async () => {
    const sections = await play('right');
    expect(tokens()).toEqual([2]);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  }, 30_000);
});

describe('Confirming a token without adopting larger answers', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 2, 4]);
    ways[C]!.requests.hold();
    // Told 5 and 3, the first holder has to confirm 5. B forgets it too early: the locks will overlap.
    await step(FIRST);
    await expire(B);
    // The second one is told 4 and 5, and confirms 5.
    await step(SECOND);
    await step(SECOND);
    await expire(C);
    // What the first one asked of C at the beginning arrives there. C is at 6 then.
    ways[C]!.requests.pass();
    await step(FIRST);
    return end();
  }

  it('gives out the same token twice, and the resource cannot tell the writes apart', async () => {
    const sections = await play('without adopting');
    expect(tokens()).toEqual([5, 5]);
    expect(duplicatesOf(sections)).toHaveLength(1);
    expect(register.staleAccepted).toEqual([base + 5]);
  }, 30_000);

  it('does not when the larger answer is confirmed in another round', async () => {
    const sections = await play('right');
    expect(tokens()).toEqual([5, 6]);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(disorderOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  }, 30_000);
});
