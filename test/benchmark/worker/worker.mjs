// One process of the pool. It is told what to do by the parent, one task at a time.
import { contend } from './contend.mjs';
import { handLocally } from './local-hand-off.mjs';
import { cycle, ping, refuse, setByScript } from './uncontended.mjs';

const connected = {};
const occupied = {};

const TASKS = {
  async connect({ contender, urls }) {
    const { connect } = await import(`../contenders/${contender}.mjs`);
    connected[contender] = await connect(urls);
  },
  async close() {
    await Promise.all(Object.values(connected).map((contender) => contender.close()));
  },
  contend: (task) => contend(connected[task.contender], task),
  cycle: (task) => cycle(connected[task.contender], task),
  refuse: (task) => refuse(connected[task.contender], task),
  async occupy({ contender, key, ttl }) {
    occupied[key] = await connected[contender].acquire(key, ttl);
  },
  vacate: ({ key }) => occupied[key](),
  ping,
  setByScript,
  handLocally,
};

// Whatever this process is waiting for: there is nobody left to tell.
process.on('disconnect', () => process.exit());

process.on('message', async ({ id, name, task }) => {
  try {
    process.send({ id, result: await TASKS[name](task) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error) });
  }
});
