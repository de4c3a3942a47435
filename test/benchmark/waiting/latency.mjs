import { latencies } from '../measure/trace.mjs';
import { trace } from './contention.mjs';

/** Long enough for the other process to be waiting for certain, in milliseconds. */
const SECTION = 5;
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
  const scene = { processes: 2, waiters: 1, section: SECTION, rest: REST };
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
      { urls: bench.urls, count: Math.ceil(count / 2), pause: SECTION },
      2,
    );
    roundTrips.push(...both.flat());
    pings.push(...(await ping(bench, { urls: [one], count, pause: SECTION })));
    pingsToAll.push(...(await ping(bench, { urls: bench.urls, count, pause: SECTION })));
    hotPings.push(...(await ping(bench, { urls: [one], count, pause: 0 })));
    for (const contender of Object.keys(handOffs)) {
      const duration = count * (SECTION + 3);
      handOffs[contender].push(...(await trace(bench, contender, scene, duration)).trace.handOffsAway);
    }
    const wantedAgain = await trace(bench, 'ours', { ...scene, rest: 0 }, count * (SECTION + 1));
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
