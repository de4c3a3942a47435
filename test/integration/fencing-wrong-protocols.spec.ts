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
let ways: Readonly<Record<number, readonly TcpProxy[]>>;
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

/** Starts both processes, and gives the masters counters that are far ahead of every clock. */
async function begin(protocol: Protocol, counters: readonly number[]): Promise<void> {
  base = Date.now() * 1_000 + 30_000_000;
  const hash = countersName(SETTINGS);
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

describe('Drawing for any holder, whoever has the key there', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 0, 0]);
    const [first, second] = [ways[FIRST]!, ways[SECOND]!];
    first[C]!.requests.hold();
    await step(FIRST);
    // B forgets it too early: the locks will overlap.
    await expire(B);
    await step(SECOND);
    first[A]!.requests.hold();
    second[A]!.requests.hold();
    second[C]!.requests.hold();
    // Both have asked B, and then only the first one is answered by A, and the second one by C.
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

  it('gives out the same token twice, and the resource cannot tell the writes apart', async () => {
    const sections = await play('for any holder');
    expect(tokens()).toEqual([5, 5]);
    expect(duplicatesOf(sections)).toHaveLength(1);
    expect(register.staleAccepted).toEqual([base + 5]);
  }, 30_000);

  it('is refused by masters that look at the key', async () => {
    const sections = await play('right');
    expect(tokens()).toHaveLength(1);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  }, 30_000);
});

describe('Confirming a token without adopting larger answers', () => {
  async function play(protocol: Protocol): Promise<readonly Section[]> {
    await begin(protocol, [4, 2, 4]);
    const first = ways[FIRST]!;
    first[C]!.requests.hold();
    await step(FIRST);
    // B forgets it too early: the locks will overlap.
    await expire(B);
    // The second one is told 3 and 5, and confirms 5.
    await step(SECOND);
    await step(SECOND);
    await expire(C);
    // Told 5 by A and nothing else in the first round, the first one confirms 5 in the second one.
    const before = await scriptsRun(A);
    const asked = step(FIRST);
    await eventually(async () => (await scriptsRun(A)) >= before + 2);
    // What it asked of C at the beginning arrives there. C is at 6 or more then.
    first[C]!.requests.pass();
    await asked;
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
    const [second, first] = tokens();
    expect(second).toBe(5);
    expect(first).toBeGreaterThan(5);
    expect(duplicatesOf(sections)).toEqual([]);
    expect(disorderOf(sections)).toEqual([]);
    expect(register.staleAccepted).toEqual([]);
  }, 30_000);
});

function proxies(): Promise<TcpProxy[]> {
  return Promise.all(masters.servers.map(({ port }) => TcpProxy.to(port)));
}
