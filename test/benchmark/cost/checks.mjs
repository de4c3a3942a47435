import { GOALS } from '../goals.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { atLeast, atMost, below, exactly, noMore } from '../promises.mjs';
import { BEFORE, FLOOR, isPeer, LIMIT, OURS, PLAIN } from './contenders.mjs';

/** The concurrency to which the promises refer. */
export const PROMISED = 64;

/** Compares the promises about the cost of a lock with the results for one number of masters. */
export function checksOf({ masters, commands, throughput }) {
  const on = `N = ${masters}`;
  const { contenders } = throughput.find(({ concurrency }) => concurrency === PROMISED);
  return [
    ...throughput.flatMap((found) => failureChecks(on, found)),
    ...(commands[OURS] === undefined
      ? []
      : // A request to a master that was slow may be withdrawn before it is sent.
        [noMore(`${on}: a lock is at most 2 commands per master`, commands[OURS] / masters, 'commands', 2)]),
    ...rateChecks(on, contenders),
    ...(contenders[BEFORE] ? throughput.flatMap((found) => beforeChecks(on, found)) : []),
    ...(masters === 5 ? [...clientChecks(on, contenders), ...serverChecks(on, contenders)] : []),
  ];
}

function failureChecks(on, { concurrency, contenders }) {
  return [OURS, PLAIN]
    .filter((name) => contenders[name])
    .map((name) =>
      exactly(`${on}, ${concurrency} at a time: no failure of ${name}`, contenders[name].failures.length, 0),
    );
}

function beforeChecks(on, { concurrency, contenders }) {
  const ratio = (name) => ratioOf(contenders[OURS][name], contenders[BEFORE][name]);
  const at = `${on}, ${concurrency} at a time`;
  return [
    atMost(`${at}: client CPU at most 1.03 of before`, ratio('client'), 1.03),
    atMost(`${at}: server CPU at most 1.03 of before`, ratio('server'), 1.03),
    atLeast(`${at}: locks/s at least 0.97 of before`, ratio('rate'), 0.97),
  ];
}

function clientChecks(on, contenders) {
  const against = [
    ['redlock5', atMost, 'at most', GOALS.clientCpu],
    ['redlock-universal', atMost, 'at most', 0.35],
    [FLOOR, below, 'below', 1],
    [LIMIT, atMost, 'at most', 2.5],
  ];
  return against
    .filter(([other]) => contenders[other] && contenders[OURS])
    .map(([other, check, limit, bound]) => {
      const ratio = ratioOf(contenders[OURS].client, contenders[other].client);
      return check(`${on}: client CPU per lock ${limit} ${bound} of ${other}`, ratio, bound);
    });
}

function serverChecks(on, { [OURS]: ours, redlock5 }) {
  if (!ours || !redlock5) return [];
  const promise = `${on}: server CPU per lock at most ${GOALS.serverCpu} of redlock5`;
  return [atMost(promise, ratioOf(ours.server, redlock5.server), GOALS.serverCpu)];
}

function rateChecks(on, contenders) {
  const peers = Object.entries(contenders).filter(([name]) => isPeer(name));
  if (peers.length === 0) return [];
  const [fastest] = peers.map(([, { rate }]) => rate).sort((a, b) => b.median - a.median);
  const bounds = { [OURS]: GOALS.rate, [PLAIN]: GOALS.rate };
  return Object.entries(bounds)
    .filter(([name]) => contenders[name])
    .map(([name, bound]) => {
      const ratio = ratioOf(contenders[name].rate, fastest);
      return atLeast(`${on}: locks/s of ${name} at least ${bound} of the fastest peer`, ratio, bound);
    });
}
