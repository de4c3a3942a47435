import { Keyspace } from '../../lib/settings/keyspace.js';
import { describe, expect, it } from '@jest/globals';
import { withClient } from '../support/command.js';
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
    const token = await lock.fencingToken();
    // Its answers come behind those of all draws, those for which no round waited included.
    await contender.redlock.masters.probe();
    expect(Number(Object.values(await countersOn(masters, 0))[0])).toBeGreaterThanOrEqual(token);
    expect([await lock.fencingToken(), await lock.fencingToken()]).toEqual([token, token]);
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
    await Promise.all(keys.flatMap((key) => Array.from({ length: 8 }, (_, i) => take(contenders[i % 4]!, key))));
    await Promise.all(contenders.map((contender) => contender.close()));
    const disordered = [...taken].filter(([, tokens]) => tokens.some((token, i) => i > 0 && token <= tokens[i - 1]!));
    expect(disordered).toEqual([]);
    expect([...taken.values()].flat()).toHaveLength(8 * keys.length);
  }, 300_000);

  function stateOf(contender: Contender, index: number) {
    const master = contender.masters[index]!;
    return { problem: master.problem(), quarantine: master.identity().quarantine };
  }
});

function countersOn(masters: SharedMasters, index: number): Promise<Record<string, string>> {
  return withClient(masters.servers[index]!.port, (client) =>
    client.hgetall(new Keyspace(resolveSettings({}).keyPrefix).counters),
  );
}

/** Names of all commands that a master has run, inside or outside scripts. */
async function commandsOn(masters: SharedMasters, index: number): Promise<string[]> {
  const stats = await withClient(masters.servers[index]!.port, (client) => client.info('commandstats'));
  return [...stats.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name]) => name!);
}
