import { ratioOf } from '../measure/rounds.mjs';
import { atLeast, atMost, exactly, noMore } from '../promises.mjs';
import { EXCLUSIVE, PERMIT, SHARED } from './crowds.mjs';
import { PERMITS } from './limit.mjs';

/** Compares the promises of shared locks and permits with the results for one number of masters. */
export function checksOf({ masters, permits, shared, oneByOne, semaphores }) {
  const on = `N = ${masters}`;
  const [ownKeys] = permits.others;
  const time = (name) => oneByOne[name].both.p50;
  const { processes, waiters, contenders } = semaphores;
  const ours = contenders[PERMIT];
  const crowds = [permits, shared].flatMap(({ subject, others }) => [subject, ...others]);
  const failures = [...crowds, ours].reduce((sum, found) => sum + found.failures.length, 0);
  return [
    atLeast(
      `${on}, ${permits.callers} callers: locks/s of ${permits.subject.title} at least 0.5 of ${ownKeys.title}`,
      ratioOf(permits.subject.rate, ownKeys.rate),
      0.5,
    ),
    atMost(
      `${on}: acquire and release p50 of a shared lock at most 1.3 of an exclusive one`,
      ratioOf(time(SHARED), time(EXCLUSIVE)),
      1.3,
    ),
    noMore(
      `${on}, ${processes} x ${waiters}: never more than ${PERMITS} hold ${PERMITS} permits`,
      ours.mostAtOnce,
      'at once',
      PERMITS,
    ),
    exactly(`${on}: no failure of ours`, failures, 0),
  ];
}
