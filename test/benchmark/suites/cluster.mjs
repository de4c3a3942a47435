import { checksOf } from '../cluster/checks.mjs';
import { ONE, ONE_PLAIN, RIVALS } from '../cluster/contenders.mjs';
import { printLatency, printThroughput } from '../cluster/print.mjs';
import { throughput } from '../cost/throughput.mjs';
import { oneByOne } from '../latency/one-by-one.mjs';
import { ClusterServers } from '../measure/cluster-servers.mjs';
import { ServerLoad } from '../measure/server-load.mjs';
import { warmUp } from '../measure/warm-up.mjs';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { Crew } from '../worker/crew.mjs';

/** Longer than any pause of a busy machine. */
const TTL = 3_000;
const CONCURRENCIES = [16, 64];

const LENGTHS = {
  usual: { latency: { rounds: 7, count: 1_000 }, load: { duration: 250, rounds: 7, warmUps: 1 } },
  quick: { latency: { rounds: 5, count: 500 }, load: { duration: 160, rounds: 5, warmUps: 1 } },
};

/** Measures locks on a cluster of six servers beside locks on one server. */
export async function run({ quick }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const server = await RedisServer.start();
  let cluster, crew, load;
  try {
    cluster = await ClusterServers.start();
    load = await loadOf(server.url, cluster.primaries);
    crew = await Crew.connect(Object.keys(RIVALS), [server.url, cluster.url], { ttl: TTL });
    const bench = { crew, load, ttl: TTL };
    await warmUp(bench, { quick });
    const latency = await oneByOne(bench, lengths.latency);
    printLatency(latency);
    const loads = [];
    for (const concurrency of CONCURRENCIES) {
      loads.push(await throughput(bench, { concurrency, ...lengths.load }));
      printThroughput(loads.at(-1));
    }
    const figures = { latency, throughput: loads };
    return { figures, checks: checksOf(figures) };
  } finally {
    load?.close();
    await crew?.end();
    await Promise.all([server.stop(), cluster?.stop()]);
  }
}

/** Of the servers that a contender uses; of a cluster, its primaries. */
async function loadOf(url, primaries) {
  const [one, all] = await Promise.all([ServerLoad.watch([url]), ServerLoad.watch(primaries)]);
  return {
    cpu: (contender) => ([ONE, ONE_PLAIN].includes(contender) ? one : all).cpu(),
    close: () => {
      one.close();
      all.close();
    },
  };
}
