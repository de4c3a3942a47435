import { OURS } from '../cost/contenders.mjs';
import { atMost, exactly } from '../promises.mjs';

/** How much the bytes that clients and masters count may differ: pings, and what is under way at the end of a round. */
const TOLERANCE = 1.05;

export function checksOf({ masters, delay, loads }) {
  const on = `N = ${masters}, ${delay} ms added`;
  const counts = Object.values(loads).flatMap(({ sent, received, toMasters, fromMasters }) => [
    [sent, toMasters],
    [received, fromMasters],
  ]);
  const largest = Math.max(...counts.map(([mine, theirs]) => apart(mine.median, theirs.median)));
  return [
    ...(loads[OURS] ? [exactly(`${on}: no failure of ours`, loads[OURS].failures.length, 0)] : []),
    atMost(`${on}: clients and masters count the same bytes, within ${TOLERANCE}`, largest, TOLERANCE),
  ];
}

const apart = (one, other) => Math.max(one / other, other / one);
