import { GOALS } from '../goals.mjs';
import { atLeast, atMost, exactly, noMore } from '../promises.mjs';

/** Compares the promises of waiting by notification with the results for one number of masters. */
export function checksOf(found) {
  const on = `N = ${found.masters}`;
  return [
    ...uncontendedChecks(on, found),
    ...found.contention.flatMap((scene) => contentionChecks(on, scene, found)),
    atMost(
      `${on}, 1 x ${found.crowd.waiters}: commands as uncontended`,
      found.crowd.commands / (2 * found.masters),
      1.02,
    ),
    atMost(`${on}: hand-off p50 at most 4 round trips`, found.latency.ours.p50 / found.latency.roundTrip.p50, 4),
  ];
}

function uncontendedChecks(on, { masters, uncontended }) {
  const { commands } = uncontended.contenders.ours;
  return [
    exactly(`${on}: acquire and release are 2 N commands`, commands, 2 * masters),
    // One master may have granted what another one refused, so a release follows the attempt. It travels together with
    // the next request. The plain SET of a single master does not say why it is refused, so a script is asked.
    atMost(
      `${on}: a refused attempt with wait: 0 is ${masters === 1 ? 'SET, an explanation' : 'N commands'} and their release`,
      uncontended.refusal.commands,
      masters === 1 ? 3 : 2 * masters,
    ),
  ];
}

function contentionChecks(on, { processes, waiters, contenders }, { masters }) {
  const where = `${on}, ${processes} x ${waiters}`;
  const { ours, redlock5, 'redlock5-10ms': tuned } = contenders;
  return [
    atLeast(`${where}: 10 times the hand-offs of redlock 5`, ours.handOffRate / redlock5.handOffRate, 10),
    atLeast(`${where}: 2 times the hand-offs of redlock 5 at 10 ms`, ours.handOffRate / tuned.handOffRate, 2),
    atMost(`${where}: longest wait a fifth of redlock 5's`, ours.longestWait / redlock5.longestWait, 0.2),
    // With one master, queueing alone turns 2 commands into 3.
    ...(masters > 1
      ? [atMost(`${where}: 1.5 times the uncontended commands`, ours.commands / (2 * masters), 1.5)]
      : []),
    ...(masters === 5 && processes === 4 && waiters === 2 ? sectionChecks(where, ours, redlock5) : []),
    exactly(`${where}: no failure`, ours.failures, 0),
    exactly(`${where}: no overlap`, ours.overlaps, 0),
  ];
}

function sectionChecks(where, ours, redlock5) {
  const { sectionRate, longestWait } = GOALS;
  return [
    atLeast(
      `${where}: sections/s at least ${sectionRate} of redlock5 with its defaults`,
      ours.sectionRate / redlock5.sectionRate,
      sectionRate,
    ),
    noMore(`${where}: longest wait at most ${longestWait} ms`, ours.longestWait, 'ms', longestWait),
  ];
}
