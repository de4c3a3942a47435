import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';
import { EXCLUSIVE, PERMIT, SHARED } from './crowds.mjs';
import { admittedByCounters, PERMITS } from './limit.mjs';
import { PEER } from './semaphores.mjs';

export function printCrowds(masters, { callers, subject, others }) {
  const to = (other, name) => (other === subject ? '' : times(ratioOf(subject[name], other[name])));
  printTable(`N = ${masters}, ${callers} callers in one process: medians of the rounds (smallest-largest)`, [
    ['', 'locks/s', `${subject.title} / it`, 'client us/lock', 'of it', 'failures'],
    ...[subject, ...others].map((it) => [
      ...[it.title, range(it.rate), to(it, 'rate'), range(it.client), to(it, 'client'), it.failures.length],
    ]),
  ]);
}

export function printOneByOne(masters, found) {
  const row = (title, { acquire, both }) => [
    ...[title, range(acquire.p50), figure(acquire.p99.median)],
    ...[range(both.p50), times(ratioOf(both.p50, found[EXCLUSIVE].both.p50)), figure(both.p99.median)],
  ];
  printTable(`N = ${masters}, one at a time, each with a key of its own: milliseconds`, [
    ['', 'acquire p50', 'acquire p99', 'and release p50', 'to exclusive', 'and release p99'],
    row('exclusive', found[EXCLUSIVE]),
    row('shared', found[SHARED]),
  ]);
}

export function printSemaphores(masters, { processes, waiters, section, contenders }) {
  const where = `${processes} processes x ${waiters} callers`;
  const ours = contenders[PERMIT];
  printTable(`N = ${masters}, ${where}, ${PERMITS} permits of one name, ${section} ms section (waits in ms)`, [
    ['', 'sections/s', 'ours / it', 'wait p50', 'longest', 'most at once', 'can admit', 'failures'],
    ...Object.entries(contenders).map(([name, it]) => [
      ...[name, range(it.rate), times(ratioOf(ours.rate, it.rate)), range(it.medianWait), range(it.longestWait)],
      ...[it.mostAtOnce, name === PEER ? admittedByCounters(masters) : PERMITS, it.failures.length],
    ]),
  ]);
}
