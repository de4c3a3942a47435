import { Keyspace } from '../../lib/settings/keyspace.js';
import { describe, expect, it } from '@jest/globals';
import { command, withClient } from '../support/command.js';
import { countersOf } from '../../lib/fencing/fencing-token.js';
import { resolveSettings } from '../../lib/settings/settings.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { shareOf } from '../support/share.js';
import { sharedMasters, type SharedMasters } from './support/shared-masters.js';

/** Draws a token. On a busy machine the process can stand still for longer than a short ttl, and begins anew. */
async function drawBy(contender: Contender): Promise<number> {
  for (;;) {
    await using lock = await contender.acquire('a', undefined, { wait: '10s', extend: true });
    const token = await lock.fencingToken().catch(() => undefined);
    if (token !== undefined) return token;
    expect(lock.isHeld).toBe(false);
  }
}

describe('A fencing token, on real servers', () => {
  const masters = sharedMasters(3);

  it('grows while each master in turn loses its data, until no master is left that remembers', async () => {
    // Long enough for a lock, and short enough for three quarantines.
    await using contender = await Contender.on(masters.urls, { ttl: 200, maxTtl: 200, restartGuard: true });
    const draw = (): Promise<number> => drawBy(contender);
    const tokens = [await draw()];
    for (const [index, server] of masters.servers.entries()) {
      await server.restart();
      tokens.push(await draw());
      await eventually(() => {
        const { problem, quarantine } = stateOf(contender, index);
        return problem === undefined && quarantine === undefined;
      });
      tokens.push(await draw());
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  it('is drawn only on request: locks leave no counters and draw nothing', async () => {
    await using contender = await Contender.on(masters.urls, { restartGuard: false });
    for (let i = 0; i < 100; i++) {
      await using lock = await contender.acquire(['a', `b${i}`], '10s');
      await lock.extend();
    }
    expect(await countersOn(masters, 0)).toEqual({});
    expect(await commandsOn(masters, 0)).not.toContain('hset');
    await using lock = await contender.acquire('a', '10s');
    // The other masters were a quorum.
    await eventually(async () => (await command(masters.servers[0]!.port, 'EXISTS', 'lock:a')) === 1);
    const scripts = await scriptsOn(masters, 0);
    const token = await lock.fencingToken();
    // Its answers come behind those of all draws, those for which no round waited included.
    await contender.redlock.masters.probe();
    const { field } = countersIn('a');
    expect(Number((await countersOn(masters, 0))[field])).toBeGreaterThanOrEqual(token);
    // The clocks of the masters differ by microseconds: the second round agrees on the largest, or the third if the master
    // for which the first did not wait had drawn a larger one. And the probe.
    const drawn = await scriptsOn(masters, 0);
    expect(drawn - scripts).toBeLessThanOrEqual(3 + 1);
    expect([await lock.fencingToken(), await lock.fencingToken()]).toEqual([token, token]);
    expect(await scriptsOn(masters, 0)).toBe(drawn);
  });

  it('is unique for each of thousands of locks that four services take at once, and grows with them', async () => {
    const options = { restartGuard: false, masterTimeout: '2s', ttl: '30s', wait: '4m' } as const;
    const contenders = await Promise.all([1, 2, 3, 4].map(() => Contender.on(masters.urls, options)));
    const taken = new Map<string, number[]>();
    const take = async (contender: Contender, key: string): Promise<void> => {
      await using lock = await contender.acquire(key);
      const token = await lock.fencingToken();
      // Each key has one holder at a time, so this is the order of its locks.
      const tokens = taken.get(key) ?? [];
      taken.set(key, [...tokens, token]);
    };
    const keys = Array.from({ length: shareOf(500) }, (_, i) => `k${i}`);
    await Promise.all(keys.flatMap((key) => Array.from({ length: 20 }, (_, i) => take(contenders[i % 4]!, key))));
    await Promise.all(contenders.map((contender) => contender.close()));
    const disordered = [...taken].filter(([, tokens]) => tokens.some((token, i) => i > 0 && token <= tokens[i - 1]!));
    expect(disordered).toEqual([]);
    expect([...taken.values()].flat()).toHaveLength(20 * keys.length);
  }, 300_000);

  function stateOf(contender: Contender, index: number) {
    const master = contender.masters[index]!;
    return { problem: master.problem(), quarantine: master.identity().quarantine };
  }
});

function countersOn(masters: SharedMasters, index: number): Promise<Record<string, string>> {
  return withClient(masters.servers[index]!.port, (client) => client.hgetall(countersIn('').hash));
}

/** Names of all commands that a master has run, inside or outside scripts. */
async function commandsOn(masters: SharedMasters, index: number): Promise<string[]> {
  const stats = await withClient(masters.servers[index]!.port, (client) => client.info('commandstats'));
  return [...stats.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name]) => name!);
}

async function scriptsOn(masters: SharedMasters, index: number): Promise<number> {
  const stats = await withClient(masters.servers[index]!.port, (client) => client.info('commandstats'));
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

function countersIn(resource: string) {
  const settings = resolveSettings({});
  const [counter] = countersOf([settings.keyPrefix + resource]);
  return { hash: new Keyspace(settings.keyPrefix).counters, field: String(counter) };
}
