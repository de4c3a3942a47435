// Increments a number in a file many times, each time under the lock. Reading and writing are separate steps, so two
// processes that are inside at once lose an update or fail to create the same directory.
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Contender } from '../support/redlocks.js';

interface Task {
  readonly urls: readonly string[];
  readonly folder: string;
  readonly times: number;
}

const { urls, folder, times } = JSON.parse(process.argv[2] ?? '') as Task;
const file = join(folder, 'number');
const inside = join(folder, 'inside');

const contender = await Contender.on(urls);
for (let i = 0; i < times; i++) {
  await using lock = await contender.acquire('number', '5s', { wait: '60s', extend: true });
  mkdirSync(inside);
  const number = Number(readFileSync(file, 'utf8'));
  await sleep(Math.random() * 4);
  lock.assertHeld();
  writeFileSync(file, String(number + 1));
  rmdirSync(inside);
}
await contender.close();
