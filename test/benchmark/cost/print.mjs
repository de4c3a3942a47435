import { figure, printTable, times } from '../report.mjs';
import { FLOOR } from './contenders.mjs';

export function printThroughput(masters, { concurrency, contenders, noise }) {
  const floor = contenders[FLOOR];
  const range = ({ median, min, max }) => `${figure(median)} (${figure(min)}-${figure(max)})`;
  const ratio = (mine, name) => times(mine[name].median / floor[name].median);
  printTable(`N = ${masters}, ${concurrency} at a time: medians of the rounds (smallest-largest), and to ${FLOOR}`, [
    ['', 'client us/lock', '', 'server us/lock', '', 'locks/s', '', 'failures'],
    ...Object.entries(contenders).map(([name, found]) => [
      ...[name, range(found.client), ratio(found, 'client'), range(found.server), ratio(found, 'server')],
      ...[range(found.rate), ratio(found, 'rate'), found.failures.reduce((sum, [, count]) => sum + count, 0)],
    ]),
  ]);
  for (const [name, { failures }] of Object.entries(contenders)) {
    if (failures.length > 0) console.log(`  ${name}: ${failures[0][0]}`);
  }
  console.log(`  the same work on the CPU took ${range(noise)} ms`);
}

export function printCommands(masters, commands) {
  printTable(`N = ${masters}, commands per lock`, [
    ['', 'commands', 'per master'],
    ...Object.entries(commands).map(([name, count]) => [name, figure(count), figure(count / masters)]),
  ]);
}
