import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { ClusterServers } from '../measure/cluster-servers.mjs';
import { warmUp } from '../measure/field.mjs';
import { ratioOf } from '../measure/figures.mjs';
import { ServerLoad } from '../measure/servers.mjs';
import { atMost, exactly } from '../report.mjs';
import { printThroughput, throughput } from './cost.mjs';
import { oneByOne, printLatency } from './latency.mjs';
import { Crew } from '../worker/processes.mjs';

/** Locks of one server: what the others are compared with. */
const ONE = 'one-server';
const ONE_PLAIN = 'one-server-plain';
const CLUSTER = 'cluster';
const CLUSTER_PLAIN = 'cluster-plain';
/** With `batchPartitions`. */
const BATCHED = 'cluster-batched';
/** Locks on resources with one hash tag, which are all in one partition of the cluster. */
const TAGGED = 'cluster-one-tag';
const TAGGED_PLAIN = 'cluster-one-tag-plain';

/** Each with what it is compared with: the same settings on one server. */
const RIVALS = {
  [ONE]: ONE,
  [CLUSTER]: ONE,
  [BATCHED]: ONE,
  [TAGGED]: ONE,
  [ONE_PLAIN]: ONE_PLAIN,
  [CLUSTER_PLAIN]: ONE_PLAIN,
  [TAGGED_PLAIN]: ONE_PLAIN,
};

const ONE_SERVER = { base: ONE, title: 'one server', rivalOf: (name) => RIVALS[name] };

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
    printLatency('One', latency, ONE_SERVER);
    const loads = [];
    for (const concurrency of CONCURRENCIES) {
      loads.push(await throughput(bench, { concurrency, ...lengths.load }));
      printThroughput('', loads.at(-1), ONE_SERVER);
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

/** How much longer one lock at a time may take than on one server. */
const BOUND = 1.5;

function checksOf({ latency, throughput }) {
  return [
    ...[CLUSTER, CLUSTER_PLAIN].map((name) => {
      const ratio = ratioOf(latency[name].both.p50, latency[RIVALS[name]].both.p50);
      return atMost(`${name}: one lock at a time, p50 at most ${BOUND} of ${RIVALS[name]}`, ratio, BOUND);
    }),
    ...throughput.flatMap(({ concurrency, contenders }) =>
      Object.entries(contenders).map(([name, { failures }]) =>
        exactly(`${concurrency} at a time: no failure of ${name}`, failures.length, 0),
      ),
    ),
  ];
}
