import { writeSync } from 'node:fs';

/** What a process says before it freezes. */
export const FREEZING = 'freezing before the write';

/**
 * Stops this process here and now, as a long garbage collection, a suspended machine or an overcommitted host does.
 * Nothing in it runs until somebody else sends it SIGCONT: no timer that could notice that the lock has ended.
 */
export function freeze(): void {
  writeSync(process.stdout.fd, `${FREEZING}\n`);
  process.kill(process.pid, 'SIGSTOP');
}
