// A process that takes its first locks, one at a time, and reports the time of each step since its start in milliseconds,
// the client's CPU of the locks in microseconds, and their times.
import { loadContender } from '../contenders.mjs';

const [contender, url, ttl, locks] = process.argv.slice(2);

const connect = await loadContender(contender);
const imported = performance.now();
const found = await connect([url], { ttl: Number(ttl) });
const connected = performance.now();
const take = async (key) => {
  if (found.acquire) await (await found.acquire(key, Number(ttl)))();
  else await found.cycle(key, Number(ttl));
};
const before = process.cpuUsage();
await take('first');
const locked = performance.now();
const durations = [];
for (let i = 1; i < Number(locks); i++) {
  const began = performance.now();
  await take(`first:${i}`);
  durations.push(performance.now() - began);
}
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ imported, connected, locked, cpu: (user + system) / Number(locks), durations }));
await found.close();
