import { sleep } from '../measure/numbers.mjs';
import { latencies } from '../measure/trace.mjs';

const CONCURRENCY = 8;
/**
 * Time for a master that hung or came back to run the commands that it has missed, before the next measurement, in
 * milliseconds.
 */
const RECOVERY = 300;

/** Measures one contender with all masters up and with one that hangs, in turn. */
export async function hung({ crew, servers, ttl }, contender, { duration, rounds }) {
  const victim = servers.at(-1);
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = [];
  const down = [];
  for (let round = 0; round < rounds; round++) {
    up.push(await strain(duration));
    victim.pause();
    try {
      down.push(await strain(duration));
    } finally {
      victim.resume();
    }
    await sleep(RECOVERY);
  }
  return { up: summaryOf(up), down: summaryOf(down) };
}

/** Measures one contender with all masters up, and after the crash of two. */
export async function dead({ crew, servers, ttl }, contender, { duration }) {
  const strain = (length) => crew.run(contender, 'strain', { concurrency: CONCURRENCY, duration: length, ttl });
  await strain(duration);
  const up = await strain(duration);
  await Promise.all(servers.slice(-2).map((server) => server.kill()));
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
