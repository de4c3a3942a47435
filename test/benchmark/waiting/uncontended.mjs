import { CommandCounter } from '../measure/command-counter.mjs';
import { median } from '../measure/numbers.mjs';
import { TTL } from './contention.mjs';

const COUNTED = 20;
/** Ttl of the key that is held while others ask for it. Masters that have just started wait equally long. */
export const LONGEST_TTL = 10_000;

/** Measures the cost of an uncontended lock and, for this library, of an attempt that does not wait. */
export async function uncontended(bench, contenders) {
  const found = { contenders: {} };
  for (const contender of contenders) {
    const cycle = (count) => first(bench, 'cycle', { contender, key: `free:${contender}`, ttl: TTL, count });
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
