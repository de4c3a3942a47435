import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';
import { ONE, RIVALS } from './contenders.mjs';

export function printLatency(contenders) {
  printTable('One at a time: milliseconds, medians of the rounds (smallest-largest)', [
    [
      ...['', 'acquire p50', 'acquire p99'],
      ...['and release p50', 'to one server', 'and release p99', 'to one server'],
    ],
    ...Object.entries(contenders).map(([name, { acquire, both }]) => {
      const rival = contenders[RIVALS[name]].both;
      return [
        ...[name, range(acquire.p50), figure(acquire.p99.median)],
        ...[range(both.p50), times(ratioOf(both.p50, rival.p50))],
        ...[range(both.p99), times(ratioOf(both.p99, rival.p99))],
      ];
    }),
  ]);
}

export function printThroughput({ concurrency, contenders, noise }) {
  printTable(`${concurrency} at a time: medians of the rounds (smallest-largest), and to one server round by round`, [
    ['', 'client us/lock', '', 'server us/lock', '', 'locks/s', '', 'failures'],
    ...Object.entries(contenders).map(([name, found]) => {
      const rival = contenders[RIVALS[name]];
      const ratio = (figures) => times(ratioOf(found[figures], rival[figures]));
      return [
        ...[name, range(found.client), ratio('client'), range(found.server), ratio('server')],
        ...[range(found.rate), ratio('rate'), found.failures.reduce((sum, [, count]) => sum + count, 0)],
      ];
    }),
  ]);
  for (const [name, { failures }] of Object.entries(contenders)) {
    if (failures.length > 0) console.log(`  ${name}: ${failures[0][0]}`);
  }
  const { min, max } = contenders[ONE].client;
  console.log(`  noise: ${ONE} itself differed by ${times(max / min)} between rounds; always the same work on the CPU`);
  console.log(`  took ${range(noise)} ms`);
}
