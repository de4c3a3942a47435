import { OURS } from '../cost/contenders.mjs';
import { GOALS } from '../goals.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atMost, exactly, noMore } from '../promises.mjs';

const KIB = 1024;
const MB = KIB * KIB;
/** The largest ratio that the noise of the machine explains for a cost that should be constant. */
const CONSTANT = 1.3;

export function checksOf({ many, most, besideHeld, acrossKeys }) {
  return [...manyChecks(many[OURS]), ...manyChecks(most), ...heldChecks(besideHeld), ...keyChecks(acrossKeys)];
}

function manyChecks(ours) {
  if (!ours) return [];
  if (ours.gaveUp) return [{ promise: 'many locks can be held', found: ours.gaveUp, kept: false }];
  const on = `${ours.count} held`;
  return [
    noMore(`${on}: at most ${GOALS.heldKiB} KiB each`, ours.bytes / KIB, 'KiB', GOALS.heldKiB),
    noMore(`${on}: timers are shared, at most a tenth of one each`, ours.timers, '', 0.1),
    noMore(
      `${on}: extensions are batched, at most a tenth of a command per lock, ttl, master`,
      ours.commandsPerTtl,
      '',
      0.1,
    ),
    exactly(`${on}: none lost`, ours.failures, 0),
  ];
}

function heldChecks(found) {
  const [first] = found;
  const last = found.at(-1);
  const promise = `client CPU beside ${last.count} held locks at most ${CONSTANT} of that beside ${first.count}`;
  return [atMost(promise, ratioOf(last.client, first.client), CONSTANT)];
}

function keyChecks(found) {
  const [first] = found;
  const last = found.at(-1);
  return [
    atMost(
      `client CPU with ${last.space} keys at most ${CONSTANT} of that with ${first.space}`,
      ratioOf(last.client, first.client),
      CONSTANT,
    ),
    noMore(`nothing is kept of ${last.visited} keys`, last.growth / MB, 'MB', 2),
  ];
}
