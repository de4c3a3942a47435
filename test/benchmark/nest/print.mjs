import { figure, printTable, range } from '../report.mjs';

const KB = 1024;

export function printDecorator({ decorated, direct, added }) {
  printTable('One call on a master in memory, microseconds of CPU (smallest-largest batch)', [
    ['', 'us/call'],
    ['LockService.withLock', range(direct)],
    ['@WithLock', range(decorated)],
    ['what it adds', range(added)],
  ]);
}

export function printFirstLock(contenders) {
  printTable('From the start of a process to its first lock, N = 1, milliseconds (smallest-largest)', [
    ['', 'imported', 'connected', 'first lock'],
    ...Object.entries(contenders).map(([name, { imported, connected, locked }]) => [
      ...[name, range(imported), range(connected), range(locked)],
    ]),
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
