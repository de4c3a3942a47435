import { FEW, librariesFor, OURS } from '../contenders.mjs';
import { onField, warmUp } from '../measure/field.mjs';
import { inRounds, median, percentile, spread } from '../measure/figures.mjs';
import { ServerLoad } from '../measure/servers.mjs';
import { atMost, exactly, figure, printTable, range } from '../report.mjs';

const TTL = 3_000;
/** They offer no release of its own to measure. */
const DECORATORS = ['nest-redlock', 'murlock'];

/**
 * The delays that are added to each round trip, in milliseconds, 0 without the proxy. With a long one, several callers
 * take one lock at a time each, or a p99.9 would take an hour: they begin spread over a lock, and hardly meet.
 */
const LENGTHS = {
  usual: {
    steps: [64, 256, 1_024, 4_096],
    scenes: [
      { delay: 0, latency: { callers: 1, count: 3_000, rounds: 5 }, load: { duration: 500, rounds: 5 } },
      { delay: 0.5, latency: { callers: 1, count: 1_000, rounds: 5 }, load: { duration: 500, rounds: 5 } },
      {
        delay: 30,
        latency: { callers: 16, within: 60, count: 1_000, rounds: 5 },
        load: { duration: 1_000, rounds: 3 },
      },
    ],
  },
  quick: {
    steps: [64, 1_024],
    scenes: [
      { delay: 0, latency: { callers: 1, count: 1_000, rounds: 3 }, load: { duration: 200, rounds: 3 } },
      { delay: 0.5, latency: { callers: 1, count: 300, rounds: 3 }, load: { duration: 200, rounds: 3 } },
      { delay: 30, latency: { callers: 16, within: 60, count: 200, rounds: 3 }, load: { duration: 400, rounds: 1 } },
    ],
  },
};

/** Measures acquire and release apart, and what a lock costs both sides and the network, by delay of the network. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only = quick ? [OURS, 'redlock5'] : FEW }) {
  const { scenes, steps } = quick ? LENGTHS.quick : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const contenders = librariesFor(count, only).filter((name) => !DECORATORS.includes(name));
    const found = [];
    for (const scene of scenes) {
      const field = { masters: count, contenders, ttl: TTL, proxied: scene.delay > 0 ? count : 0 };
      found.push({ masters: count, ...(await onField(field, (bench) => measure(bench, { quick, steps, ...scene }))) });
    }
    printLatencies(count, found);
    printLoads(count, found);
    printTraffic(count, found);
    figures.push(...found);
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(field, { quick, steps, delay, latency, load }) {
  await field.proxy?.delayBy(delay);
  await warmUp(field, { quick });
  const servers = await ServerLoad.watch(field.urls);
  try {
    return {
      ...{ delay, callers: latency.callers },
      latencies: await latencies(field, latency),
      ping: await pingOf(field),
      loads: await loads({ ...field, load: servers }, { steps, ...load }),
    };
  } finally {
    servers.close();
  }
}

/** The median round trip of a client to one master, in milliseconds: the delay, the proxy itself, and the machine. */
async function pingOf({ crew, urls, proxy }) {
  const [url] = proxy?.urls ?? urls;
  return median(await crew.run(crew.members[0], 'ping', { urls: [url], count: 50, pause: 0 }));
}

/** Times of acquire and of release, per contender. Only p99.9 is of all rounds together: a round has too few for it. */
async function latencies({ crew, ttl }, { rounds, ...task }) {
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (member) =>
    crew.run(member, 'locks', { ...task, ttl }),
  );
  const found = {};
  for (const [member, results] of measured) {
    const of = (step) => summaryOf(results.map((times) => times[step]));
    found[member] = { acquire: of('acquire'), release: of('release') };
  }
  return found;
}

function summaryOf(rounds) {
  const all = rounds.flat();
  return {
    p50: spread(rounds.map((times) => percentile(times, 0.5))),
    p99: spread(rounds.map((times) => percentile(times, 0.99))),
    p999: percentile(all, 0.999),
    samples: all.length,
  };
}

/** With more locks at a time, the rate has to grow by so much: else the client, or the masters, have no more to give. */
const GROWTH = 1.1;

/**
 * The cost of a lock when the client does as much as it can: CPU of the client and of each master, locks per second, and
 * what went over the network.
 *
 * @param steps locks at a time that are tried
 */
async function loads(field, { steps, duration, rounds }) {
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

function printLatencies(masters, scenes) {
  printTable(
    `N = ${masters}, each with a key of its own: milliseconds, medians of the rounds (smallest-largest); p99.9 of all rounds together`,
    [
      [
        ...['added', '', 'callers', 'a PING', 'acquire p50', 'p99', 'p99.9'],
        ...['release p50', 'p99', 'p99.9', 'samples'],
      ],
      ...rowsOf(scenes, ({ callers, ping, latencies }, name) => {
        const { acquire, release } = latencies[name];
        const times = [acquire, release].flatMap(({ p50, p99, p999 }) => [range(p50), range(p99), figure(p999)]);
        return [callers, figure(ping), ...times, acquire.samples];
      }),
    ],
  );
}

function printLoads(masters, scenes) {
  printTable(
    `N = ${masters}, as many at a time as it takes for the most locks/s: medians of the rounds (smallest-largest)`,
    [
      [
        ...['added', '', 'at a time', 'client busy %', 'locks/s', 'locks/s per client core'],
        ...['client s per million locks', 'each master s per million locks', 'failures'],
      ],
      ...rowsOf(scenes, ({ loads }, name) => {
        const { concurrency, busy, rate, perCore, client, failures, ...load } = loads[name];
        const each = `${figure(load.master.median)} (${figure(load.leastMaster.median)}-${figure(load.mostMaster.median)})`;
        return [
          ...[concurrency, figure(busy.median * 100), range(rate), range(perCore)],
          ...[range(client), masters === 1 ? range(load.master) : each, failures.length],
        ];
      }),
    ],
  );
}

function printTraffic(masters, scenes) {
  printTable(`N = ${masters}, per lock, with all masters, at that load`, [
    ['added', '', 'commands sent', 'run, also in scripts', 'bytes sent', 'bytes received'],
    ...rowsOf(scenes, ({ loads }, name) => {
      const { requests, run, sent, received } = loads[name];
      return [figure(requests), figure(run.median), Math.round(sent.median), Math.round(received.median)];
    }),
  ]);
}

/** One row per delay and contender. */
function rowsOf(scenes, cells) {
  return scenes.flatMap((scene) =>
    Object.keys(scene.loads).map((name, i) => [i === 0 ? `${scene.delay} ms` : '', name, ...cells(scene, name)]),
  );
}

/** How much the bytes that clients and masters count may differ: pings, and what is under way at the end of a round. */
const TOLERANCE = 1.05;

function checksOf({ masters, delay, loads }) {
  const on = `N = ${masters}, ${delay} ms added`;
  const counts = Object.values(loads).flatMap(({ sent, received, toMasters, fromMasters }) => [
    [sent, toMasters],
    [received, fromMasters],
  ]);
  const largest = Math.max(...counts.map(([mine, theirs]) => apart(mine.median, theirs.median)));
  return [
    ...(loads[OURS] ? [exactly(`${on}: no failure of ours`, loads[OURS].failures.length, 0)] : []),
    atMost(`${on}: clients and masters count the same bytes, within ${TOLERANCE}`, largest, TOLERANCE),
  ];
}

const apart = (one, other) => Math.max(one / other, other / one);
