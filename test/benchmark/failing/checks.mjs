import { OURS } from '../cost/contenders.mjs';
import { atMost, exactly, noMore } from '../promises.mjs';

const MB = 1024 * 1024;
/** How much the rest of the heap may vary between two collections, in MB. */
const SLACK = 2;

export function checksOf({ slow, hung, oneDead, twoDead, longHung }) {
  if (!hung[OURS]) return [];
  const gaveUp = [slow, hung, oneDead, twoDead, longHung].map((scene) => scene[OURS].gaveUp).find(Boolean);
  if (gaveUp) return [{ promise: 'masters that fail can be measured', found: gaveUp, kept: false }];
  return [
    ...pathChecks('one slow of five', slow[OURS]),
    ...pathChecks('one hung of five', hung[OURS]),
    ...pathChecks('one dead of five', oneDead[OURS]),
    exactly('two dead of five: no failure of ours', twoDead[OURS].down.failures.length, 0),
    memoryCheck(longHung[OURS]),
  ];
}

function pathChecks(on, { up, down }) {
  return [
    atMost(`${on}: p99 of ours at most 1.5 of its p99 with all up`, down.p99 / up.p99, 1.5),
    exactly(`${on}: no failure of ours`, down.failures.length, 0),
  ];
}

function memoryCheck({ memory, seconds }) {
  // After the longest ttl, everything that is kept for the hung master exists. From then on, nothing may be added.
  const settled = memory[Math.floor(memory.length / 3)];
  const promise = `one hung for ${Math.round(seconds)} s: memory of ours grows in its last two thirds by at most ${SLACK} MB`;
  return noMore(promise, (memory.at(-1) - settled) / MB, 'MB', SLACK);
}
