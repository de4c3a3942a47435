import { FEW, librariesFor, OURS } from '../cost/contenders.mjs';
import { onField } from '../measure/field.mjs';
import { median } from '../measure/numbers.mjs';
import { ServerLoad } from '../measure/server-load.mjs';
import { warmUp } from '../measure/warm-up.mjs';
import { checksOf } from '../network/checks.mjs';
import { latencies } from '../network/latency.mjs';
import { loads } from '../network/load.mjs';
import { printLatencies, printLoads, printTraffic } from '../network/print.mjs';

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
