import { inRounds, spread } from '../measure/rounds.mjs';

/** With more locks at a time, the rate has to grow by so much: else the client, or the masters, have no more to give. */
const GROWTH = 1.1;

/**
 * The cost of a lock when the client does as much as it can: CPU of the client and of each master, locks per second, and
 * what went over the network.
 *
 * @param steps locks at a time that are tried
 */
export async function loads(field, { steps, duration, rounds }) {
  const { crew, load, ttl } = field;
  const atATime = {};
  for (const member of crew.members) atATime[member] = await saturating(field, member, { steps, duration });
  const measured = await inRounds({ rounds }, crew.members, async (member) => {
    const before = await load.read();
    const done = await crew.run(member, 'loadWithTraffic', { concurrency: atATime[member], duration, ttl });
    const after = await load.read();
    return perLock(done, { before, after, own: difference(after, await load.read()) });
  });
  const found = {};
  for (const [member, results] of measured) {
    const concurrency = atATime[member];
    const of = (name) => spread(results.map((figures) => figures[name]));
    const failures = results.flatMap(({ failures }) => Object.keys(failures));
    const names = ['busy', 'rate', 'perCore', 'client', 'leastMaster', 'master', 'mostMaster', 'sent', 'received'];
    found[member] = {
      ...{ concurrency, failures },
      ...Object.fromEntries([...names, 'run', 'toMasters', 'fromMasters'].map((name) => [name, of(name)])),
      requests: await requestsPerLock(field, member, { concurrency, duration }),
    };
  }
  return found;
}

/** The smallest of the steps from which on more locks at a time hardly give more locks per second. */
async function saturating({ crew, ttl }, member, { steps, duration }) {
  let best = { concurrency: steps[0], rate: 0 };
  for (const concurrency of steps) {
    const { locks, elapsed, failures } = await crew.run(member, 'load', { concurrency, duration, ttl });
    if (Object.keys(failures).length > 0) break;
    if (locks / elapsed > best.rate * GROWTH) best = { concurrency, rate: locks / elapsed };
  }
  return best.concurrency;
}

/** @param own what one reading of the masters' figures costs them */
function perLock({ locks, elapsed, cpu, sent, received, failures }, { before, after, own }) {
  const servers = difference(before, after);
  const masters = servers.cpus.map((used) => used / locks);
  return {
    failures,
    busy: cpu / 1_000 / elapsed,
    rate: (locks / elapsed) * 1_000,
    perCore: (locks / cpu) * 1e6,
    client: cpu / locks,
    leastMaster: Math.min(...masters),
    master: masters.reduce((total, used) => total + used, 0) / masters.length,
    mostMaster: Math.max(...masters),
    sent: sent / locks,
    received: received / locks,
    /** Commands that the masters ran, also in scripts. */
    run: servers.commands / locks,
    // As the masters count them, to compare.
    toMasters: (servers.received - own.received) / locks,
    fromMasters: (servers.sent - own.sent) / locks,
  };
}

function difference(before, after) {
  const of = (name) => after[name] - before[name];
  const cpus = after.cpus.map((used, i) => used - before.cpus[i]);
  return { cpus, received: of('received'), sent: of('sent'), commands: of('commands') };
}

async function requestsPerLock({ crew, ttl }, member, task) {
  const { requests, locks } = await crew.run(member, 'loadWithRequests', { ...task, ttl });
  return requests / locks;
}
