// Holds a lock and prints a line when it is lost.
import type { RedlockOptions } from '../../lib/settings/options.js';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly ttl: number;
  readonly options?: RedlockOptions;
}

const { urls, ttl, options } = JSON.parse(process.argv[2] ?? '') as Task;
const contender = await Contender.on(urls, options);
const lock = await contender.acquire('stepped', ttl, { extend: true });
const say = (line: string): void => void process.stdout.write(`${line}\n`);

lock.signal.addEventListener('abort', () => {
  say(`lost: ${(lock.signal.reason as Error).message}`);
  process.exit();
});
say('held');
