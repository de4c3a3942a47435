import { monitorEventLoopDelay } from 'node:perf_hooks';
import { decorate } from '../contenders/decorate.mjs';
import { load, Module, NestFactory } from '../contenders/nest.mjs';
import { allVote } from '../contenders/ours.mjs';
import { heldInMemory, sleep } from '../measure/figures.mjs';

/** Time after which the leftovers of beginning are gone, in milliseconds. */
const SETTLED = 300;
/** So many at a time, for costs that do not depend on it. */
const CALLERS = 8;
/** Locks that are taken at a time. */
const MANY_CALLERS = 64;

const waiting = [];

/** The share of a processor that this process needs for `duration` milliseconds, and how long its event loop was blocked. */
export async function idle(_, { duration }) {
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  await sleep(duration);
  const { user, system } = process.cpuUsage(cpu);
  delays.disable();
  return { share: (user + system) / 1000 / (performance.now() - start), delay: delays.percentile(99) / 1e6 };
}

/** Begins `count` calls that wait for these keys, in turn. Returns the bytes of memory that each new one occupies. */
export async function waitFor({ locks }, { count, keys, ttl }) {
  const before = heldInMemory();
  for (let i = 0; i < count; i++) waiting.push(locks.acquire(keys[i % keys.length], ttl));
  await sleep(SETTLED);
  return { bytes: (heldInMemory() - before) / count };
}

/** Lets every waiting call have its lock and release it. Returns microseconds of CPU for each. */
export async function serve() {
  const all = waiting.splice(0);
  const cpu = process.cpuUsage();
  await Promise.all(all.map(async (lock) => (await lock).release()));
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / all.length };
}

const held = [];
let calls = 0;

/** Takes locks that are extended until `count` are held. Returns their keys, and the bytes of memory of each new one. */
export async function hold({ locks }, { count, ttl }) {
  const before = heldInMemory();
  const keys = [];
  let left = count - held.length;
  const wanted = left;
  async function caller() {
    while (left-- > 0) {
      const key = `held:${process.pid}:${calls++}`;
      keys.push(key);
      held.push(await locks.acquire(key, { ttl, extend: true }));
    }
  }
  await Promise.all(Array.from({ length: MANY_CALLERS }, caller));
  await sleep(SETTLED);
  return { keys, bytes: (heldInMemory() - before) / wanted };
}

/** Releases all locks. An error ends the measurement: a lock was lost. */
export async function letGo() {
  await Promise.all(held.splice(0).map((lock) => lock.release()));
}

let shape;

/**
 * Decides what `shaped` measures, and takes all permits but a few.
 *
 * @param length characters of each key
 * @param resources keys of each call
 * @param permits the limit of a name
 */
export async function beShaped({ locks }, { length = 20, resources = 1, permits, ttl }) {
  const keyOf = () => `${calls++}:`.padEnd(length, 'k');
  const name = keyOf();
  const nextKey = () => (resources === 1 ? keyOf() : Array.from({ length: resources }, keyOf));
  shape = { callers: Math.min(CALLERS, permits ?? CALLERS), next: permits ? () => name : nextKey };
  shape.options = permits ? { ttl, permits } : { ttl };
  const others = Array.from({ length: (permits ?? 0) - shape.callers }, () =>
    locks.acquire(name, { ...shape.options, extend: true }),
  );
  held.push(...(await Promise.all(others)));
}

/** Acquires and releases so for `duration` milliseconds. Returns the number of calls, and the CPU in microseconds. */
export async function shaped({ locks }, { duration }) {
  const { callers, next, options } = shape;
  const end = performance.now() + duration;
  const cpu = process.cpuUsage();
  let count = 0;
  async function caller() {
    for (; performance.now() < end; count++) await (await locks.acquire(next(), options)).release();
  }
  await Promise.all(Array.from({ length: callers }, caller));
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: user + system, count };
}

const applications = [];

/** Starts an application with `count` jobs that are due every `period`. */
export async function startJobs(_, { urls, count, period, ttl }) {
  const { ScheduleModule } = await load('@nestjs/schedule');
  const { LockService, RedlockModule } = await import('../../../dist/esm/index.js');
  const { LockedInterval, RedlockScheduleModule } = await import('../../../dist/esm/schedule/index.js');
  let runs = 0;
  class Jobs {}
  for (let i = 0; i < count; i++) {
    Jobs.prototype[`job${i}`] = async () => void runs++;
    decorate(Jobs, `job${i}`, LockedInterval(period, { name: `${count}:${i}` }));
  }
  class App {}
  const imports = [ScheduleModule.forRoot(), RedlockModule.forRoot({ masters: urls, ttl }), RedlockScheduleModule];
  Module({ imports, providers: [Jobs] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  await allVote(app.get(LockService));
  applications.push({ app, runs: () => runs });
}

/** How many jobs have run in this process, and its CPU in microseconds. */
export function jobsSoFar() {
  const { user, system } = process.cpuUsage();
  return { runs: applications.at(-1).runs(), cpu: user + system };
}

/** Waits until so many ticks have been due, and half a period more. */
export async function tick(_, { period, ticks }) {
  await sleep((Math.floor(Date.now() / period) + ticks + 0.5) * period - Date.now());
}

export const endJobs = () => applications.pop().app.close();
