import { Redis } from 'ioredis';
import { before } from '../contenders.mjs';
import { inRounds, median, sharedNow, sleep, spread } from './figures.mjs';
import { CommandCounter } from './servers.mjs';
import { latencies, Trace } from './trace.mjs';

/**
 * Ttl of a lock, in milliseconds, the same for all. With the usual 10 s, `redlock` 5 would stand still for 10 s
 * whenever keys from the previous attempt of the same process block an attempt.
 */
const TTL = 1_000;
/** Duration of the work under the lock, in milliseconds. */
const SECTION = 1;
const WARM_UP = 200;
/** Time after the end of a round before the benchmark frees the key for the remaining waiters, in milliseconds. */
const GRACE = 200;

const CONTENDERS = ['ours', 'redlock5', 'redlock5-10ms', ...before];

/** Several processes with several waiters each compete for one key. The results are medians of the rounds. */
export async function contention(bench, { processes, waiters }) {
  const scene = { processes, waiters, section: SECTION };
  const rounds = Object.fromEntries(CONTENDERS.map((contender) => [contender, []]));
  for (const contender of CONTENDERS) await contend(bench, contender, scene, WARM_UP);
  for (let round = 0; round < bench.rounds; round++) {
    for (const contender of CONTENDERS) {
      rounds[contender].push(await contend(bench, contender, scene, bench.duration));
    }
  }
  const contenders = {};
  for (const contender of CONTENDERS) {
    const commands = await countCommands(bench, contender, scene);
    contenders[contender] = { ...summaryOf(rounds[contender]), commands };
  }
  return { processes, waiters, contenders };
}

/** One process in which many waiters want the same key. */
export async function crowdInOneProcess(bench, waiters) {
  const scene = { processes: 1, waiters, section: SECTION };
  await contend(bench, 'ours', scene, WARM_UP);
  const { handOffRate, longestWait, failures } = await contend(bench, 'ours', scene, bench.duration);
  return {
    waiters,
    handOffRate,
    longestWait,
    failures: failures.length,
    commands: await countCommands(bench, 'ours', scene),
  };
}

let keys = 0;
/** A new key for each round, so that leftovers of one round do not affect the next. */
const newKey = (contender) => `${contender}:${keys++}`;

/** Runs the contenders on one key for a while, and returns their trace. */
export async function trace({ pool, urls }, contender, scene, duration, key = newKey(contender)) {
  const { processes, waiters, section, rest, keys: count } = scene;
  // In the future, so that all processes have received the task by then.
  const start = sharedNow() + 50;
  const end = start + duration;
  const task = { contender, key, ttl: TTL, section, rest, waiters, start, end, keys: count };
  const contending = pool.run('contend', task, processes);
  const results = await endingSoon(contending, urls, key, end);
  return { trace: new Trace(results, start, end) };
}

/** Frees the key repeatedly after the end: some contenders would otherwise keep blocking each other for a long time. */
async function endingSoon(contending, urls, key, end) {
  let open = true;
  const results = contending.finally(() => (open = false));
  const clients = urls.map((url) => new Redis(url));
  await Promise.race([results, sleep(end + GRACE - sharedNow())]);
  while (open) {
    await Promise.all(clients.map((client) => client.del(key, `lock:${key}`)));
    await sleep(20);
  }
  for (const client of clients) client.disconnect();
  return results;
}

async function contend(bench, contender, scene, duration) {
  return (await trace(bench, contender, scene, duration)).trace;
}

async function countCommands(bench, contender, scene) {
  const key = newKey(contender);
  const counter = await CommandCounter.start(bench.urls, key);
  const { trace: found } = await trace(bench, contender, scene, Math.min(bench.duration, 1_000), key);
  return (await counter.stop()) / found.all;
}

/** What one round gives, of which the median of all rounds counts. */
const FIGURES = ['handOffRate', 'sectionRate', 'longestWait', 'medianWait'];

function summaryOf(rounds) {
  const medians = FIGURES.map((name) => [name, median(rounds.map((round) => round[name]))]);
  const sum = (of) => rounds.map(of).reduce((a, b) => a + b);
  return {
    ...Object.fromEntries(medians),
    failures: sum(({ failures }) => failures.length),
    overlaps: sum(({ overlaps }) => overlaps),
    luck: median(rounds.map(({ luck }) => luck)),
    mostOvertaken: Math.max(...rounds.map(({ mostOvertaken }) => mostOvertaken)),
  };
}

/** One caller more than waiters: the holder, which asks for the key again as soon as it has released it. */
const CROWDS = [
  { waiting: 1, processes: 2, waiters: 1 },
  { waiting: 8, processes: 3, waiters: 3 },
  { waiting: 128, processes: 3, waiters: 43 },
];
/** Without `redlock5` at its defaults, whose holder nearly always takes the key again before a waiter asks. */
const OFTEN_HANDED_OVER = ['ours', 'redlock5-10ms'];

/**
 * Measures the time from the call of release to the work of the next holder, by the number of callers that wait. Times
 * to a waiter of another process also count apart: only they need the network.
 */
export async function handOffsByCrowd(bench) {
  const found = [];
  for (const { waiting, ...crowd } of CROWDS) {
    const measured = await inRounds({ rounds: bench.rounds, warmUps: 1 }, OFTEN_HANDED_OVER, async (contender) => {
      const { trace: seen } = await trace(bench, contender, { ...crowd, section: SECTION }, bench.duration);
      return { all: latencies(seen.handOffs), away: latencies(seen.handOffsAway) };
    });
    found.push({ waiting, contenders: [...measured].map(([name, rounds]) => ({ name, ...handOffsOf(rounds) })) });
  }
  return found;
}

function handOffsOf(rounds) {
  const of = (which) => ({
    p50: spread(rounds.map((round) => round[which].p50)),
    p99: spread(rounds.map((round) => round[which].p99)),
    samples: rounds.reduce((sum, round) => sum + round[which].samples, 0),
  });
  return { all: of('all'), away: of('away') };
}

/** Long enough for the other process to be waiting for certain, in milliseconds. */
const LONG_SECTION = 5;
/**
 * How long a process pauses after a release, in milliseconds. Its next action is not part of the hand-off, and would
 * take CPU from the other process on a machine with two cores.
 */
const REST = 2;

/**
 * Measures the time from the call of release in one process to the work in another, and the machine's round trip
 * meanwhile.
 *
 * Hand-offs are compared with the round trip of the algorithm, to all masters until a quorum has answered. It is
 * measured under the same conditions: two processes at once, each of which wakes up from a pause as long as a section,
 * and a script that sets one key, which is the least that a lock can be. A PING of a single process is answered by a
 * machine that is otherwise idle. Both depend on how deeply the machine sleeps in between, so the table also shows the
 * PINGs.
 */
export async function handOffLatency(bench) {
  const scene = { processes: 2, waiters: 1, section: LONG_SECTION, rest: REST };
  const handOffs = { ours: [], 'redlock5-10ms': [] };
  const atOnce = [];
  const roundTrips = [];
  const pings = [];
  const pingsToAll = [];
  const hotPings = [];
  const rounds = 4;
  const count = Math.ceil(bench.samples / rounds);
  for (let round = 0; round < rounds; round++) {
    // At the same pace, because a process that wakes up from a pause is slower than one that is already running.
    const [one] = bench.urls;
    const both = await bench.pool.run(
      'setByScript',
      { urls: bench.urls, count: Math.ceil(count / 2), pause: LONG_SECTION },
      2,
    );
    roundTrips.push(...both.flat());
    pings.push(...(await ping(bench, { urls: [one], count, pause: LONG_SECTION })));
    pingsToAll.push(...(await ping(bench, { urls: bench.urls, count, pause: LONG_SECTION })));
    hotPings.push(...(await ping(bench, { urls: [one], count, pause: 0 })));
    for (const contender of Object.keys(handOffs)) {
      const duration = count * (LONG_SECTION + 3);
      handOffs[contender].push(...(await trace(bench, contender, scene, duration)).trace.handOffsAway);
    }
    const wantedAgain = await trace(bench, 'ours', { ...scene, rest: 0 }, count * (LONG_SECTION + 1));
    atOnce.push(...wantedAgain.trace.handOffsAway);
  }
  return {
    roundTrip: latencies(roundTrips),
    pingToOne: latencies(pings),
    pingToAll: latencies(pingsToAll),
    hotPing: latencies(hotPings),
    ours: latencies(handOffs.ours),
    atOnce: latencies(atOnce),
    'redlock5-10ms': latencies(handOffs['redlock5-10ms']),
  };
}

async function ping({ pool }, task) {
  const [times] = await pool.run('ping', task, 1);
  return times;
}

const HAND_OVERS = ['release, then acquire', 'release and acquire in one tick', 'token swap'];

/** Measures the effect of a hand-off inside a process in one round: a prototype against raw connections. */
export async function localHandOff({ pool, urls, rounds, duration }) {
  const scenes = [
    { waiters: 8, section: 1 },
    { waiters: 128, section: 1 },
    { waiters: 128, section: 0 },
  ];
  const found = [];
  for (const scene of scenes) {
    const results = Object.fromEntries(HAND_OVERS.map((handOver) => [handOver, []]));
    for (let round = 0; round < rounds; round++) {
      for (const handOver of HAND_OVERS) {
        const task = { urls, key: 'local', ttl: TTL, handOver, duration: duration / 3, ...scene };
        results[handOver].push(...(await pool.run('handLocally', task, 1)));
      }
    }
    const handOvers = Object.entries(results).map(([handOver, runs]) => ({
      handOver,
      perSecond: median(runs.map(({ perSecond }) => perSecond)),
      cpu: median(runs.map(({ cpu }) => cpu)),
    }));
    found.push({ ...scene, handOvers });
  }
  return found;
}

const COUNTED = 20;
/** Ttl of the key that is held while others ask for it. Masters that have just started wait equally long. */
export const LONGEST_TTL = 10_000;

/** Measures the cost of an uncontended lock and, for this library, of an attempt that does not wait. */
export async function uncontended(bench, contenders) {
  const found = { contenders: {} };
  for (const contender of contenders) {
    const cycle = (count) => first(bench, 'cycles', { contender, ttl: TTL, count });
    await cycle(COUNTED);
    const counter = await CommandCounter.start(bench.urls);
    await cycle(COUNTED);
    const commands = (await counter.stop()) / COUNTED;
    const { acquire, both } = await cycle(bench.samples);
    found.contenders[contender] = { commands, acquire: median(acquire), both: median(both) };
  }
  found.pingAll = median(await first(bench, 'ping', { urls: bench.urls, count: bench.samples, pause: 0 }));
  found.refusal = await refusal(bench);
  return found;
}

async function refusal(bench) {
  const key = 'held';
  const refuse = (count) => first(bench, 'refuse', { contender: 'ours', key, ttl: TTL, count });
  await first(bench, 'occupy', { contender: 'ours', key, ttl: LONGEST_TTL });
  const times = await refuse(bench.samples);
  const counter = await CommandCounter.start(bench.urls);
  await refuse(COUNTED);
  const commands = (await counter.stop()) / COUNTED;
  await first(bench, 'vacate', { key });
  return { commands, time: median(times) };
}

async function first({ pool }, name, task) {
  const [result] = await pool.run(name, task, 1);
  return result;
}
