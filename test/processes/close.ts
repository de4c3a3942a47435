// Takes locks, closes, prints a line, and must then exit by itself, whatever state the servers are in.
import { redisMasters } from '../../lib/redis/master-source.js';
import { contextOf } from '../support/context.js';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  /** Process ids of servers that hang before the end. */
  readonly hang: readonly number[];
  /** Whether to acquire locks first. */
  readonly lock: boolean;
}

const { urls, hang, lock } = JSON.parse(process.argv[2] ?? '') as Task;
const contender = new Contender(redisMasters('masters', urls, contextOf()));
if (lock) {
  await contender.redlock.masters.connect(10_000);
  await contender.acquire('extended', '10s', { extend: true });
  await contender.acquire('not extended', '10s');
} else {
  void contender.redlock.masters.open();
}
for (const pid of hang) process.kill(pid, 'SIGSTOP');
contender.redlock.stop();
await contender.redlock.drain(10);
await contender.close();
process.stdout.write('closed\n');
