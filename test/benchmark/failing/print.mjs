import { figure, printTable, times } from '../report.mjs';

const MB = 1024 * 1024;

export function printScene(title, contenders) {
  const row = (name, when, found) => [
    ...[name, when, figure(found.p50), figure(found.p99), figure(found.rate), figure(found.growth / MB)],
    found.failures.reduce((sum, [, count]) => sum + count, 0),
  ];
  printTable(`${title} (latency of acquire and release in ms; memory in MB per second)`, [
    ['', '', 'p50', 'p99', 'locks/s', 'memory', 'failures', 'p99 to all up'],
    ...Object.entries(contenders).flatMap(([name, { up, down, gaveUp }]) =>
      gaveUp
        ? [[name, gaveUp, '-', '-', '-', '-', '-', '-']]
        : [
            [...row(name, 'all up', up), ''],
            [...row('', 'failing', down), times(down.p99 / up.p99)],
          ],
    ),
  ]);
  for (const [name, { down }] of Object.entries(contenders)) {
    if (down?.failures.length > 0) console.log(`  ${name}: ${down.failures[0][0]}`);
  }
}

export function printMemory(title, contenders) {
  printTable(title, [
    ['', 'seconds', 'locks/s', 'MB before', 'MB after', 'MB per second'],
    ...Object.entries(contenders).map(([name, { seconds, rate, memory, gaveUp }]) =>
      gaveUp
        ? [name, gaveUp, '-', '-', '-', '-']
        : [
            ...[name, figure(seconds), figure(rate), figure(memory[0] / MB), figure(memory.at(-1) / MB)],
            figure((memory.at(-1) - memory[0]) / MB / seconds),
          ],
    ),
  ]);
}
