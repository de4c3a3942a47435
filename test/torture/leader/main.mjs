// `npm run torture:leader`: three instances that campaign for one election, on three real servers. One fault at a time: the
// leader is killed, stopped, cut off from its masters or asked to resign, or all instances are deployed anew. There must
// never be two leaders, terms must grow, and the events of each instance must be in order.
import { fork } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensureBuild } from '../../../scripts/ensure-build.mjs';
import { ensureDependencies } from '../../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../../scripts/options.mjs';
import { writePart } from '../../../scripts/page.mjs';
import { ensureRedisServer, RedisServer } from '../../../scripts/redis-servers.mjs';
import { Link } from './link.mjs';
import { TTL } from './times.mjs';
import { judge } from './verdict.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const NAMES = ['a', 'b', 'c'];
/** Between two faults, in milliseconds. */
const CALM = { least: 500, most: 2_500 };

const { values } = optionsOf({
  options: { seconds: { type: 'string', default: '600' }, markdown: { type: 'string' } },
});
const seconds = Number(values.seconds);
if (!(seconds >= 5)) throw new Error('--seconds must be 5 or more');

await ensureDependencies();
await ensureRedisServer();
await ensureBuild();

const folder = await mkdtemp(join(tmpdir(), 'redlock-leader-'));
const file = join(folder, 'events.jsonl');
const servers = [];
const workers = new Map();
const links = [];
const kills = [];
const counts = {};
let generation = 0;
let leader;

const now = () => Number(process.hrtime.bigint()) / 1e6;
const between = ({ least, most }) => least + Math.random() * (most - least);
const leading = () => [...workers.values()].find(({ instance }) => instance === leader);

async function start(name) {
  const own = await Promise.all(servers.map(({ port }) => Link.to(port)));
  links.push(...own);
  const instance = `${name}${++generation}`;
  const child = fork(WORKER, [own.map(({ url }) => url).join(','), file, instance], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.on('message', ({ elected }) => (leader = elected ?? leader));
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    void ended.then((code) => reject(new Error(`instance ${instance} has ended with ${code} before it was ready`)));
  });
  workers.set(name, { name, instance, child, links: own, ended });
}

async function kill(worker) {
  kills.push({ instance: worker.instance, at: now() });
  worker.child.kill('SIGKILL');
  await worker.ended;
  await start(worker.name);
}

const FAULTS = {
  'leader killed': kill,
  'leader stopped': async ({ child }) => {
    child.kill('SIGSTOP');
    await sleep(between({ least: TTL / 2, most: 3 * TTL }));
    child.kill('SIGCONT');
  },
  'leader cut off from all masters': (worker) => cutOff(worker.links),
  'leader cut off from one master': (worker) => cutOff(worker.links.slice(0, 1)),
  'leader cut off from two masters': (worker) => cutOff(worker.links.slice(1)),
  'leader asked to resign': async ({ child }) => void child.send('resign'),
  'rolling deployment': async () => {
    for (const worker of [...workers.values()]) {
      await start(worker.name);
      worker.child.kill('SIGTERM');
      await worker.ended;
    }
  },
};

async function cutOff(own) {
  for (const link of own) link.cut();
  await sleep(between({ least: TTL / 2, most: 3 * TTL }));
  for (const link of own) link.heal();
}

/** Each kind once in random order, and then again. */
async function breakUntil(end) {
  for (;;) {
    for (const kind of Object.keys(FAULTS).toSorted(() => Math.random() - 0.5)) {
      await sleep(between(CALM));
      if (now() >= end) return;
      const worker = leading();
      if (!worker) continue;
      counts[kind] = (counts[kind] ?? 0) + 1;
      await FAULTS[kind](worker);
    }
  }
}

try {
  for (let i = 0; i < 3; i++) servers.push(await RedisServer.start());
  console.log(`Three instances on three servers campaign, for ${seconds} s`);
  await Promise.all(NAMES.map(start));
  // New masters vote after 2.5 s.
  while (leader === undefined) await sleep(100);
  await breakUntil(now() + seconds * 1_000);
  // Longer than a crashed leader blocks the others, and a poll.
  await sleep(TTL + 4_500);
  const lines = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { table, problems } = judge({ lines, kills });
  const last = lines.findLast(({ event }) => event === 'leads');
  if (!(now() - last.after < 1_000)) problems.push('no instance leads at the end');
  const faults = Object.entries(counts).map(([kind, count]) => `${kind}: ${count}`);
  console.log(`\n${table}\n\n${faults.join('\n')}`);
  if (values.markdown) {
    const command = `npm run torture:leader -- --seconds ${seconds} --markdown ${values.markdown}`;
    await writePart(values.markdown, 'leader', `Written by \`${command}\`.\n\n${table}`);
  }
  for (const problem of problems.slice(0, 20)) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  const running = [...workers.values()].filter(({ child }) => child.exitCode === null && child.signalCode === null);
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  for (const link of links) link.close();
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
}
