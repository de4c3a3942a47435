import { before, contendersFor } from '../cost/contenders.mjs';
import { checksOf } from '../latency/checks.mjs';
import { oneByOne } from '../latency/one-by-one.mjs';
import { printLatency } from '../latency/print.mjs';
import { onField } from '../measure/field.mjs';
import { warmUp } from '../measure/warm-up.mjs';

const TTL = 3_000;

const LENGTHS = {
  usual: { rounds: 7, count: 1_000 },
  quick: { rounds: 5, count: 500 },
  // As many as in `cost`, and for the same reason.
  comparison: { rounds: 101, count: 300 },
};

/** Measures how long an uncontended lock takes, with no other at the same time. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const lengths = quick ? LENGTHS.quick : before.length > 0 ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: contendersFor(count, only), ttl: TTL };
    const contenders = await onField(field, async (bench) => {
      await warmUp(bench, { quick });
      return oneByOne(bench, lengths);
    });
    printLatency(count, contenders);
    figures.push({ masters: count, contenders });
  }
  return { figures, checks: figures.flatMap(checksOf) };
}
