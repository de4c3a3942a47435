import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';

const KIB = 1024;
const MB = KIB * KIB;

export function printMany(title, contenders) {
  printTable(title, [
    ['', 'KiB each', 'timers each', 'commands/s', 'per lock, ttl and master', 'client CPU %', 'lost'],
    ...Object.entries(contenders).map(([name, found]) => [
      ...[
        found.gaveUp ? `${name}: ${found.gaveUp}` : name,
        figure(found.bytes / KIB),
        figure(found.timers),
        figure(found.commandRate),
      ],
      ...[figure(found.commandsPerTtl), figure(100 * found.share), found.failures ?? '-'],
    ]),
  ]);
}

export function printBesideHeld(title, found) {
  const [first] = found;
  printTable(title, [
    ['held', 'client us/lock', `to ${first.count} held`],
    ...found.map(({ count, client }) => [count, range(client), times(ratioOf(client, first.client))]),
  ]);
}

export function printAcrossKeys(title, found) {
  const [first] = found;
  printTable(title, [
    ['keys', 'used before', 'client us/lock', `to ${first.space} keys`, 'MB left of them'],
    ...found.map(({ space, visited, growth, client }) => [
      ...[space, visited, range(client), times(ratioOf(client, first.client)), figure(growth / MB)],
    ]),
  ]);
}
