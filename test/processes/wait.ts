// Waits for a lock, tells when it has it, and gives it back when it is told to, or never.
import { setTimeout as sleep } from 'node:timers/promises';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly resource: string;
  readonly ttl: number;
  /** Milliseconds for which the lock is kept; without it, for ever. */
  readonly hold?: number;
}

const { urls, resource, ttl, hold } = JSON.parse(process.argv[2] ?? '') as Task;
const contender = await Contender.on(urls);
const lock = await contender.acquire(resource, ttl, { wait: '60s' });
process.stdout.write('held\n');
await sleep(hold ?? 2 ** 30);
await lock.release();
await contender.close();
