// Holds a lock and prints a line when it is lost, or when it is still held some extensions after the wall clock was set.
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly ttl: number;
  readonly options?: RedlockOptions;
}

/** The wall clock was set if it is ahead by more than this, in milliseconds. */
const SET = 2_000;

const { urls, ttl, options } = JSON.parse(process.argv[2] ?? '') as Task;
const contender = await Contender.on(urls, options);
const lock = await contender.acquire('doubtful', ttl, { extend: true });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const ahead = (): number => Date.now() - performance.now();
const before = ahead();
let setAt: number | undefined;

lock.signal.addEventListener('abort', () => {
  say(`lost: ${(lock.signal.reason as Error).message}`);
  process.exit();
});
setInterval(() => {
  if (ahead() - before > SET) setAt ??= performance.now();
  if (setAt !== undefined && performance.now() - setAt > ttl && lock.isHeld) {
    say('kept');
    setAt = Infinity;
  }
}, 50);
say('held');
