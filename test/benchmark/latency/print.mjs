import { FLOOR } from '../cost/contenders.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';

export function printLatency(masters, contenders) {
  const floor = contenders[FLOOR].both;
  printTable(`N = ${masters}, one at a time: milliseconds, medians of the rounds (smallest-largest)`, [
    [...['', 'acquire p50', 'acquire p99'], ...['and release p50', `to ${FLOOR}`, 'and release p99', `to ${FLOOR}`]],
    ...Object.entries(contenders).map(([name, { acquire, both }]) => [
      ...[name, range(acquire.p50), figure(acquire.p99.median)],
      ...[range(both.p50), times(ratioOf(both.p50, floor.p50))],
      ...[range(both.p99), times(ratioOf(both.p99, floor.p99))],
    ]),
  ]);
}
