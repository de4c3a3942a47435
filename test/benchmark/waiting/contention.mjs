import { Redis } from 'ioredis';
import { before } from '../cost/contenders.mjs';
import { CommandCounter } from '../measure/command-counter.mjs';
import { median, sharedNow, sleep } from '../measure/numbers.mjs';
import { Trace } from '../measure/trace.mjs';

/**
 * Ttl of a lock, in milliseconds, the same for all. With the usual 10 s, `redlock` 5 would stand still for 10 s
 * whenever keys from the previous attempt of the same process block an attempt.
 */
export const TTL = 1_000;
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
    contenders[contender] = { ...summaryOf(rounds[contender]), commands, rounds: rounds[contender] };
  }
  return { processes, waiters, contenders };
}

/** One process in which many waiters want the same key. */
export async function crowdInOneProcess(bench, waiters) {
  const scene = { processes: 1, waiters, section: SECTION };
  await contend(bench, 'ours', scene, WARM_UP);
  const { handOffRate, longestWait, failures } = await contend(bench, 'ours', scene, bench.duration);
  return { waiters, handOffRate, longestWait, failures, commands: await countCommands(bench, 'ours', scene) };
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
  const { trace: found } = await trace(bench, contender, scene, duration);
  return {
    handOffRate: found.handOffRate,
    sectionRate: found.sectionRate,
    longestWait: found.longestWait,
    medianWait: found.medianWait,
    failures: found.failures.length,
    failure: found.failures[0],
    overlaps: found.overlaps,
    luck: found.luck,
    mostOvertaken: found.mostOvertaken,
    handOff: median(found.handOffsAway),
  };
}

async function countCommands(bench, contender, scene) {
  const key = newKey(contender);
  const counter = await CommandCounter.start(bench.urls, key);
  const { trace: found } = await trace(bench, contender, scene, Math.min(bench.duration, 1_000), key);
  return (await counter.stop()) / found.all;
}

function summaryOf(rounds) {
  const of = (pick) => rounds.map(pick);
  return {
    handOffRate: median(of(({ handOffRate }) => handOffRate)),
    sectionRate: median(of(({ sectionRate }) => sectionRate)),
    longestWait: median(of(({ longestWait }) => longestWait)),
    medianWait: median(of(({ medianWait }) => medianWait)),
    failures: of(({ failures }) => failures).reduce((a, b) => a + b),
    failure: of(({ failure }) => failure).find(Boolean),
    overlaps: of(({ overlaps }) => overlaps).reduce((a, b) => a + b),
    luck: median(of(({ luck }) => luck.most / luck.fewest)),
    mostOvertaken: Math.max(...of(({ mostOvertaken }) => mostOvertaken)),
    handOff: median(of(({ handOff }) => handOff)),
  };
}
