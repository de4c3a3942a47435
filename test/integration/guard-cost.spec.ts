import { expect, it } from '@jest/globals';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';

/** So few that none expires before the last one: it would be released, with a GET. */
const LOCKS = 100;
const TTL = 3_000;
/** Besides the locks: what a test of this machine's speed cannot exclude, such as a reconnection. */
const MOST_BESIDES = 10;

// What that costs the server is measured by `npm run bench -- cost`: the time of a server that waits for each request
// differs by a multiple from one moment to the next.
it('with the guard, an acquisition takes one round trip and a script of three commands', async () => {
  await using masters = await startMasters(1);
  const { port } = masters.servers[0]!;
  const options = { ttl: TTL, maxTtl: TTL, masterTimeout: TTL / 4, restartGuard: true };
  await using contender = await Contender.on(masters.urls, options);
  await eventually(() => contender.redlock.masters.status().canVote);
  await command(port, 'CONFIG', 'RESETSTAT');
  for (let i = 0; i < LOCKS; i++) await contender.acquire(`cost:${i}`, TTL, { wait: 0, extend: false });
  const stats = String(await command(port, 'INFO', 'commandstats'));
  const calls = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, count]) => [name!, Number(count)]);
  const perLock = calls.filter(([, count]) => Number(count) > MOST_BESIDES).sort();
  expect(perLock.map(([name]) => name)).toEqual(['evalsha', 'hget', 'set', 'time']);
  for (const [, count] of perLock) {
    expect(count).toBeGreaterThanOrEqual(LOCKS);
    expect(count).toBeLessThanOrEqual(LOCKS + MOST_BESIDES);
  }
  expect(stats).not.toMatch(/cmdstat_(eval|script\|load):/);
}, 60_000);
