import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';

const KIB = 1024;
const MB = KIB * KIB;

/** @param contenders a name and what was found, for each row */
export function printMany(contenders) {
  printTable('Locks held and extended', [
    [
      '',
      'held',
      'masters',
      'ttl s',
      'KiB each',
      'timers each',
      'commands/s',
      'per lock, ttl and master',
      'client CPU %',
      'lost',
    ],
    ...contenders.map(([name, found]) => [
      ...[
        found.gaveUp ? `${name}: ${found.gaveUp}` : name,
        ...(found.gaveUp ? ['-', '-', '-'] : [found.count, found.masters, found.ttl / 1_000]),
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
