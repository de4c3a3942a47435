import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { Program } from '../../../test/support/program.js';
import { TTL } from '../src/config.js';
import { Outbox } from '../src/outbox.js';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const LEADS = 'leads "outbox" in term';

const masters: RedisServer[] = [];
const instances: Program[] = [];
const store = mkdtempSync(join(tmpdir(), 'leader-'));

beforeAll(async () => {
  for (let i = 0; i < 3; i++) masters.push(await RedisServer.start());
}, 60_000);
afterAll(async () => {
  await Promise.all(masters.map((master) => master.stop()));
  rmSync(store, { recursive: true, force: true });
});
afterEach(async () => {
  for (const instance of instances) instance.kill('SIGKILL');
  await Promise.all(instances.splice(0).map((instance) => instance.ended));
});

function start(): Program {
  const urls = masters.map(({ url }) => url).join(',');
  const instance = Program.start(PROGRAM, { REDLOCK_MASTERS: urls, STORE: store });
  instances.push(instance);
  return instance;
}

const outbox = new Outbox(store);

/** The one of these instances that leads next and sends something, and after how many milliseconds it leads. */
async function nextLeader(...candidates: readonly Program[]): Promise<[Program, number]> {
  const since = Date.now();
  const leader = await Promise.race(candidates.map((each) => each.says(LEADS).then(() => each)));
  const taken = Date.now() - since;
  while (outbox.sent().at(-1)?.pid !== leader.pid) await sleep(10);
  return [leader, taken];
}

it('Of three instances one is killed, one is stopped, and one is deployed anew: the messages go on in their order', async () => {
  const all = [start(), start(), start()];
  const [first] = await nextLeader(...all);
  const others = all.filter((each) => each !== first);

  const afterKill = nextLeader(...others);
  first.kill('SIGKILL');
  const [second, crashed] = await afterKill;
  // One ttl, and a poll of up to 4 s. The rest is for a busy machine.
  expect(crashed).toBeLessThan(TTL + 6_000);

  const [third] = others.filter((each) => each !== second) as [Program];
  const replacement = start();
  await replacement.says('dependencies initialized');
  const afterStop = nextLeader(third, replacement);
  process.kill(second.pid, 'SIGSTOP');
  const [leader] = await afterStop;
  const resumed = second.says('does not lead "outbox" any more');
  process.kill(second.pid, 'SIGCONT');
  await resumed;

  const newcomer = start();
  await newcomer.says('dependencies initialized');
  const rest = [second, third, replacement, newcomer].filter((each) => each !== leader);
  const afterDeployment = nextLeader(...rest);
  leader.kill('SIGTERM');
  const [, deployed] = await afterDeployment;
  await expect(leader.ended).resolves.toEqual([0, null]);
  expect(deployed).toBeLessThan(TTL);

  const sent = outbox.sent();
  expect(new Set(sent.map(({ term }) => term)).size).toBeGreaterThanOrEqual(4);
  expect(sent.map(({ message }) => message)).toEqual(sent.map((_, index) => index + 1));
  expect(sent.map(({ term }) => term)).toEqual(sent.map(({ term }) => term).toSorted((one, other) => one - other));
}, 120_000);
