import { onField, warmUp } from '../measure/field.mjs';
import { ratioOf } from '../measure/figures.mjs';
import { ServerLoad } from '../measure/servers.mjs';
import { atMost } from '../report.mjs';
import { printThroughput, throughput } from './cost.mjs';

const TTL = 3_000;
const SET = 3;
const ONE = 'ours';
const TWO = 'ours-two-sets';

const LENGTHS = {
  // So many that each of the two has full commands, too.
  usual: { concurrency: 256, duration: 250, rounds: 11, warmUps: 1 },
  quick: { concurrency: 256, duration: 160, rounds: 5, warmUps: 1 },
};

/** Measures whether two lock services, each with masters of its own, carry twice the locks: the CPU of each is the same. */
export async function run({ quick }) {
  const share = (urls, member) => (member === ONE ? urls.slice(0, SET) : urls);
  const field = { masters: 2 * SET, contenders: [ONE, TWO], ttl: TTL, share };
  const found = await onField(field, async (bench) => {
    await warmUp(bench, { quick });
    const load = await ServerLoad.watch(bench.urls);
    return throughput({ ...bench, load }, quick ? LENGTHS.quick : LENGTHS.usual).finally(() => load.close());
  });
  printThroughput(`Sets of ${SET} masters, `, found, { base: ONE });
  const ratio = (name) => ratioOf(found.contenders[TWO][name], found.contenders[ONE][name]);
  return {
    figures: found,
    checks: [
      atMost('two sets: CPU of the client per lock at most 1.3 of one set', ratio('client'), 1.3),
      atMost('two sets: CPU of all masters per lock at most 1.3 of one set', ratio('server'), 1.3),
    ],
  };
}
