// `npm run torture:jobs`: three instances with a job that is due every second, on three real servers. One instance at a
// time is killed at a random moment and started again. Afterwards every tick must have run, and more than once only if the
// process that ran it was killed before it had ended.
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
import { explain } from './verdict.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const INSTANCES = ['a', 'b', 'c'];
/** Between two kills, in milliseconds. */
const CALM = { least: 1_500, most: 4_500 };
/** The history holds the last 20 runs of a job that is due every second. */
const HISTORY_EVERY = 5_000;
/** As in the worker, in milliseconds. */
const LONGEST_RUN = 400;

const { values } = optionsOf({
  options: {
    seconds: { type: 'string', default: '600' },
    kill: { type: 'boolean', default: true },
    markdown: { type: 'string' },
  },
  allowNegative: true,
});
const seconds = Number(values.seconds);
if (!(seconds >= 10)) throw new Error('--seconds must be 10 or more');

await ensureDependencies();
await ensureRedisServer();
await ensureBuild();

const folder = await mkdtemp(join(tmpdir(), 'redlock-jobs-'));
const file = join(folder, 'runs.jsonl');
const servers = [];
const workers = new Map();
/** Each kill: the instance, by the number of its process, and when. */
const kills = [];
/** What the history has shown, by tick and attempt. */
const recorded = new Map();
let isOver = false;
/** Receives the name of the instance that begins a run. */
let announceRun = () => undefined;

/** Starts an instance. Its name has the number of its process, so that two runs of it can be distinguished. */
async function start(name) {
  const instance = `${name}${(workers.get(name)?.generation ?? 0) + 1}`;
  const child = fork(WORKER, [servers.map(({ url }) => url).join(','), file, instance], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const worker = { name, instance, child, generation: (workers.get(name)?.generation ?? 0) + 1 };
  workers.set(name, worker);
  child.on('message', (message) => {
    if (message.running) announceRun(name);
    for (const run of message.runs ?? []) recorded.set(`${Date.parse(run.scheduledFor)} ${run.attempt}`, run);
  });
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`instance ${instance} has ended with ${code} before it was ready`)));
  });
}

async function kill({ child, instance }) {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  kills.push({ instance, at: Date.now() });
  await ended;
}

async function killNowAndThen() {
  while (!isOver) {
    await sleep(CALM.least + Math.random() * (CALM.most - CALM.least));
    if (isOver) return;
    // Mostly the instance that runs the job, at a random moment of the run or soon after it.
    const anyone = INSTANCES[Math.floor(Math.random() * INSTANCES.length)];
    const runner = Math.random() < 0.8 ? await new Promise((resolve) => (announceRun = resolve)) : anyone;
    const worker = workers.get(runner);
    await sleep(Math.random() * LONGEST_RUN);
    await kill(worker);
    await start(worker.name);
  }
}

async function askForHistory() {
  while (!isOver) {
    await sleep(HISTORY_EVERY);
    for (const { child } of workers.values()) if (child.connected) child.send('history', () => undefined);
  }
}

try {
  for (let i = 0; i < 3; i++) servers.push(await RedisServer.start());
  console.log(`Three instances on three servers, a tick every second, for ${seconds} s`);
  await Promise.all(INSTANCES.map(start));
  // New masters vote after 2.5 s, and the first tick stores a baseline.
  await sleep(5_000);
  const from = Date.now();
  const work = [askForHistory(), ...(values.kill ? [killNowAndThen()] : [])];
  await sleep(seconds * 1_000);
  const until = Date.now();
  isOver = true;
  await Promise.all(work);
  // The last ticks end, and are in the history.
  await sleep(3_000);
  for (const { child } of workers.values()) child.send('history');
  await sleep(1_000);
  const lines = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { table, problems } = explain({ lines, kills, recorded, from, until });
  console.log(`\n${table}`);
  if (values.markdown) {
    const command = `npm run torture:jobs -- --seconds ${seconds} --markdown ${values.markdown}`;
    await writePart(values.markdown, 'jobs', `Written by \`${command}\`.\n\n${table}`);
  }
  for (const problem of problems.slice(0, 20)) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await Promise.all(
    [...workers.values()].filter(({ child }) => child.exitCode === null && child.signalCode === null).map(kill),
  );
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
}
