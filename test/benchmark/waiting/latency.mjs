import { latencies } from '../measure/trace.mjs';
import { trace } from './contention.mjs';

/** Long enough for the other process to wait for certain, in milliseconds. */
const SECTION = 5;

/** From the call of release in one process to the work in another, and the machine's round trip meanwhile. */
export async function handOffLatency(bench) {
  const scene = { processes: 2, waiters: 1, section: SECTION };
  const handOffs = { ours: [], 'redlock5-10ms': [] };
  const roundTrips = [];
  const roundTripsToAll = [];
  const hotRoundTrips = [];
  const rounds = 4;
  const count = Math.ceil(bench.samples / rounds);
  for (let round = 0; round < rounds; round++) {
    // At the same pace: whoever wakes up from a pause is slower than whoever is running anyway.
    const [one] = bench.urls;
    roundTrips.push(...(await ping(bench, { urls: [one], count, pause: SECTION })));
    roundTripsToAll.push(...(await ping(bench, { urls: bench.urls, count, pause: SECTION })));
    hotRoundTrips.push(...(await ping(bench, { urls: [one], count, pause: 0 })));
    for (const contender of Object.keys(handOffs)) {
      const duration = count * (SECTION + 3);
      handOffs[contender].push(...(await trace(bench, contender, scene, duration)).trace.handOffs);
    }
  }
  return {
    roundTrip: latencies(roundTrips),
    roundTripToAll: latencies(roundTripsToAll),
    hotRoundTrip: latencies(hotRoundTrips),
    ours: latencies(handOffs.ours),
    'redlock5-10ms': latencies(handOffs['redlock5-10ms']),
  };
}

async function ping({ pool }, task) {
  const [times] = await pool.run('ping', task, 1);
  return times;
}
