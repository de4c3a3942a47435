import { ratioOf } from '../measure/rounds.mjs';
import { atMost, exactly } from '../promises.mjs';
import { CLUSTER, CLUSTER_PLAIN, RIVALS } from './contenders.mjs';

/** How much longer one lock at a time may take than on one server. */
const BOUND = 1.5;

export function checksOf({ latency, throughput }) {
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
