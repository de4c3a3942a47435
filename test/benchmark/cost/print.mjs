import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';
import { FLOOR } from './contenders.mjs';

export function printThroughput(masters, { concurrency, contenders, noise }) {
  const floor = contenders[FLOOR];
  const ratio = (mine, name) => times(ratioOf(mine[name], floor[name]));
  printTable(
    `N = ${masters}, ${concurrency} at a time: medians of the rounds (smallest-largest), and to ${FLOOR} round by round`,
    [
      ['', 'client us/lock', '', 'server us/lock', '', 'locks/s', '', 'failures'],
      ...Object.entries(contenders).map(([name, found]) => [
        ...[name, range(found.client), ratio(found, 'client'), range(found.server), ratio(found, 'server')],
        ...[range(found.rate), ratio(found, 'rate'), found.failures.reduce((sum, [, count]) => sum + count, 0)],
      ]),
    ],
  );
  for (const [name, { failures }] of Object.entries(contenders)) {
    if (failures.length > 0) console.log(`  ${name}: ${failures[0][0]}`);
  }
  const { min, max } = floor.client;
  console.log(
    `  noise: ${FLOOR} itself differed by ${times(max / min)} between rounds; always the same work on the CPU`,
  );
  console.log(`  took ${range(noise)} ms`);
}

export function printCommands(masters, commands) {
  printTable(`N = ${masters}, commands per lock`, [
    ['', 'commands', 'per master'],
    ...Object.entries(commands).map(([name, count]) => [name, figure(count), figure(count / masters)]),
  ]);
}
