import { ratioOf } from '../measure/rounds.mjs';
import { figure, printTable, range, times } from '../report.mjs';

const KB = 1024;

/** @param on the master, for the title */
export function printDecorator(on, { byHand, direct, decorated, added }) {
  const row = (title, cost) => [title, range(cost), times(ratioOf(cost, byHand))];
  printTable(`A locked call on ${on}, 64 at a time: microseconds of the client's CPU (smallest-largest round)`, [
    ['', 'us/call', 'to acquire and release'],
    row('acquire and release', byHand),
    row('LockService.withLock', direct),
    row('@WithLock', decorated),
    ['@WithLock adds to withLock', range(added), ''],
  ]);
}

export function printFirstLock(contenders) {
  printTable('From the start of a process to its first lock, N = 1, milliseconds (smallest-largest)', [
    ['', 'imported', 'connected', 'first lock'],
    ...Object.entries(contenders).map(([name, { imported, connected, locked }]) => [
      ...[name, range(imported), range(connected), range(locked)],
    ]),
  ]);
  printTable('The first 1,000 locks of a process, one at a time, N = 1 (smallest-largest)', [
    ['', 'client us/lock', 'p50 ms', 'p99 ms'],
    ...Object.entries(contenders).map(([name, { cpu, p50, p99 }]) => [name, range(cpu), range(p50), range(p99)]),
  ]);
}

export function printSizes(packages) {
  printTable('Packages, KB', [
    ['', 'packed', 'unpacked', 'files', 'dependencies', 'their size'],
    ...Object.entries(packages).map(([name, { packed, unpacked, files, dependencies, brought }]) => [
      ...[name, figure(packed / KB), figure(unpacked / KB), files, dependencies, figure(brought / KB)],
    ]),
  ]);
}
