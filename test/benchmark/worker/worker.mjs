// One process of the pool. Its parent sends it one task at a time.
import { loadContender } from '../contenders.mjs';
import { contend, cycles, load, warmUp } from './load.mjs';
import { strain } from './strain.mjs';
import { ping } from './ping.mjs';

const connected = {};

const TASKS = {
  async connect({ contender, urls, settings }) {
    const connect = await loadContender(contender);
    const found = await connect(urls, settings);
    connected[contender] = { cycle: async (key, ttl) => (await found.acquire(key, ttl))(), ...found };
  },
  async close() {
    await Promise.all(Object.values(connected).map((contender) => contender.close()));
  },
  warmUp: (task) => warmUp(connected[task.contender], task),
  cycles: (task) => cycles(connected[task.contender], task),
  // Loaded when they are needed, because they load the build of this checkout.
  async growth({ step, ...task }) {
    return (await import('./growth.mjs'))[step](connected[task.contender], task);
  },
  async decorator(task) {
    const { decorator } = await import('./decorator.mjs');
    return decorator(task);
  },
  strain: (task) => strain(connected[task.contender], task),
  load: (task) => load(connected[task.contender], task),
  contend: (task) => contend(connected[task.contender], task),
  ping,
};

// Whatever this process is waiting for, no parent is left to receive a result.
process.on('disconnect', () => process.exit());

process.on('message', async ({ id, name, task }) => {
  try {
    process.send({ id, result: await TASKS[name](task) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error) });
  }
});
