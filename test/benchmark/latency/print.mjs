import { FLOOR } from '../cost/contenders.mjs';
import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';

export function printLatency(masters, contenders) {
  const floor = contenders[FLOOR];
  printTable(`N = ${masters}, one at a time: milliseconds (smallest-largest median of a round)`, [
    ['', 'acquire p50', 'acquire p99', 'and release p50', `to ${FLOOR}`, 'and release p99'],
    ...Object.entries(contenders).map(([name, { acquire, both }]) => [
      ...[name, range(acquire.p50), figure(acquire.p99)],
      ...[range(both.p50), times(ratioOf(both.p50, floor.both.p50)), figure(both.p99)],
    ]),
  ]);
}
