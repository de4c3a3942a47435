import { sleep } from '../measure/numbers.mjs';
import { latencies } from '../measure/trace.mjs';

const CONCURRENCY = 8;
/**
 * Time for a master that hung or came back to run the commands that it has missed, before the next measurement, in
 * milliseconds.
 */
const RECOVERY = 300;

/** Milliseconds that a slow master adds to each round trip. */
export const SLOW = 30;

/** Measures one contender with all masters up and with one that hangs, in turn. */
export function hung(field, contender, lengths) {
  const victim = field.servers.at(-1);
  return inTurn(field, contender, {
    ...lengths,
    fail: () => victim.pause(),
    recover: () => victim.resume(),
  });
}

/** Measures one contender with all masters fast and with one that is slow, in turn. The last one is behind a proxy. */
export function slow(field, contender, lengths) {
  return inTurn(field, contender, {
    ...lengths,
    fail: () => field.proxy.delayBy(SLOW),
    recover: () => field.proxy.delayBy(0),
  });
}

async function inTurn({ crew, ttl }, contender, { duration, rounds, fail, recover }) {
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = [];
  const down = [];
  for (let round = 0; round < rounds; round++) {
    up.push(await strain(duration));
    await fail();
    try {
      down.push(await strain(duration));
    } finally {
      await recover();
    }
    await sleep(RECOVERY);
  }
  return { up: summaryOf(up), down: summaryOf(down) };
}

/** Measures one contender with all masters up, and after the crash of some. */
export async function dead({ crew, servers, ttl }, contender, { duration, count }) {
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = await strain(duration);
  await Promise.all(servers.slice(-count).map((server) => server.kill()));
  const down = await strain(2 * duration);
  return { up: summaryOf([up]), down: summaryOf([down]) };
}

/** Measures one contender under load while a master hangs for a long time: its memory after each of `sampled`. */
export async function longHung({ crew, servers, ttl }, contender, { duration, sampled }) {
  const victim = servers.at(-1);
  await crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: 1_000, ttl });
  victim.pause();
  try {
    const task = { concurrency: CONCURRENCY, duration, ttl, sampled };
    const { memory, locks, elapsed } = await crew.run(contender, 'strain', task);
    return { seconds: elapsed / 1000, memory, rate: (locks / elapsed) * 1000 };
  } finally {
    victim.resume();
  }
}

function summaryOf(runs) {
  const times = runs.flatMap((run) => run.times);
  const sum = (of) => runs.map(of).reduce((total, value) => total + value, 0);
  const seconds = sum(({ elapsed }) => elapsed) / 1000;
  return {
    ...latencies(times),
    rate: sum(({ locks }) => locks) / seconds,
    growth: sum(({ memory }) => memory.at(-1) - memory[0]) / seconds,
    failures: runs.flatMap(({ failures }) => Object.entries(failures)),
  };
}
