import { OURS } from '../cost/contenders.mjs';
import { atMost, exactly, noMore } from '../promises.mjs';

const MB = 1024 * 1024;
/** What the rest of the heap may vary by between two collections. */
const SLACK = 2;

export function checksOf({ hung, dead, longHung }) {
  const ours = hung[OURS];
  if (!ours || ours.gaveUp) return [];
  const { memory, seconds } = longHung[OURS];
  // What is kept for the hung master is all there after the longest ttl: from then on nothing may be added.
  const settled = memory[Math.floor(memory.length / 3)];
  return [
    atMost('one hung of five: p99 of ours at most 1.5 of its p99 with all up', ours.down.p99 / ours.up.p99, 1.5),
    exactly('one hung of five: no failure of ours', ours.down.failures.length, 0),
    exactly('two dead of five: no failure of ours', dead[OURS].down.failures.length, 0),
    noMore(
      `one hung for ${Math.round(seconds)} s: memory of ours grows in its last two thirds by at most ${SLACK} MB`,
      (memory.at(-1) - settled) / MB,
      'MB',
      SLACK,
    ),
  ];
}
