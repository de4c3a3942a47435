import { hostname } from 'node:os';

// Leaves room for the number of the process in the 100 characters of a name.
const LONGEST_HOST = 80;

export function defaultInstance(): string {
  return `${hostname()
    .replace(/[^!-~]/g, '?')
    .slice(0, LONGEST_HOST)}:${process.pid}`;
}
