// One process of the pool. Its parent sends it one task at a time.
import { loadContender } from '../contenders.mjs';
import { contend, cycles, load, locks, warmUp } from './load.mjs';
import { handLocally } from './local-hand-off.mjs';
import { hold, letGo, randomKeys, rest, strain, timers, visitKeys } from './memory.mjs';
import { requestsDuring, trafficDuring } from './sockets.mjs';
import { ping, refuse, setByScript } from './uncontended.mjs';

const connected = {};
const occupied = {};

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
  // Loaded when it is needed, because it loads the build of this checkout.
  async decorator(task) {
    const { decorator } = await import('./decorator.mjs');
    return decorator(task);
  },
  hold: (task) => hold(connected[task.contender], task),
  rest: (task) => rest(connected[task.contender], task),
  letGo,
  timers: (task) => timers(connected[task.contender], task),
  visitKeys: (task) => visitKeys(connected[task.contender], task),
  randomKeys: (task) => randomKeys(connected[task.contender], task),
  strain: (task) => strain(connected[task.contender], task),
  load: (task) => load(connected[task.contender], task),
  loadWithRequests: (task) => requestsDuring(() => load(connected[task.contender], task)),
  loadWithTraffic: (task) => trafficDuring(() => load(connected[task.contender], task)),
  locks: (task) => locks(connected[task.contender], task),
  contend: (task) => contend(connected[task.contender], task),
  refuse: (task) => refuse(connected[task.contender], task),
  async occupy({ contender, key, ttl }) {
    occupied[key] = await connected[contender].acquire(key, ttl);
  },
  vacate: ({ key }) => occupied[key](),
  ping,
  setByScript,
  handLocally,
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
