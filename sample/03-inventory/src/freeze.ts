import { writeSync } from 'node:fs';

/** Output of a process before it freezes. */
export const FREEZING = 'freezing before the write';

/**
 * Stops this process at once, as a long garbage collection, a suspended machine or an overcommitted host does. Nothing
 * in it runs until another process sends SIGCONT, not even a timer that could notice the end of the lock.
 */
export function freeze(): void {
  writeSync(process.stdout.fd, `${FREEZING}\n`);
  process.kill(process.pid, 'SIGSTOP');
}
