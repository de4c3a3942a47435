// Waits for a lock, prints a line when it has the lock or has lost it, and releases it after `hold` milliseconds.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedlockOptions } from '../../lib/settings/options.js';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly resource: string;
  readonly ttl: number;
  /** Milliseconds for which to hold the lock; by default twelve days, longer than any test. */
  readonly hold?: number;
  readonly options?: RedlockOptions;
}

const { urls, resource, ttl, hold, options } = JSON.parse(process.argv[2] ?? '') as Task;
const contender = await Contender.on(urls, options);
const lock = await contender.acquire(resource, ttl, { wait: '60s', extend: true });
lock.signal.addEventListener('abort', () => {
  process.stdout.write(`lost: ${(lock.signal.reason as Error).message}\n`);
  process.exit();
});
process.stdout.write('held\n');
await sleep(hold ?? 2 ** 30);
await lock.release();
await contender.close();
