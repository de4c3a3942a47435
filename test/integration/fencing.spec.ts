import { Keyspace } from '../../lib/core/keyspace.js';
import { describe, expect, it } from '@jest/globals';
import { withClient } from '../support/command.js';
import { countersOf } from '../../lib/core/fencing.js';
import type { MasterReply } from '../../lib/core/master.interface.js';
import { resolveSettings } from '../../lib/core/settings/settings.js';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { acquiring, ask, drawing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { TcpProxy } from '../support/tcp-proxy.js';
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
    const scripts = await scriptsOn(masters, 0);
    const token = await lock.fencingToken();
    const { field } = countersIn('a');
    await eventually(async () => (await countersOn(masters, 0))[field] === String(token));
    expect(await scriptsOn(masters, 0)).toBe(scripts + 1);
    expect([await lock.fencingToken(), await lock.fencingToken()]).toEqual([token, token]);
    expect(await scriptsOn(masters, 0)).toBe(scripts + 1);
  });

  it('is unique for each of thousands of locks that four services take at once, and grows with them', async () => {
    const options = { restartGuard: false, masterTimeout: '2s', ttl: '30s', wait: '60s' } as const;
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
  }, 120_000);

  // Protocol 9.3
  it('is not drawn from a master whose identity is still being checked: its floor would be outdated', async () => {
    await using proxy = await TcpProxy.to(masters.servers[0]!.port);
    await using contender = await Contender.on([proxy.url], { ttl: 200, maxTtl: 200, restartGuard: true });
    const [master] = contender.masters;
    await eventually(() => master!.identity().quarantine === undefined);
    // A grant counts only for a ttl that the master knows.
    await contender.acquire('another', 200).then((lock) => lock.release());
    await withClient(masters.servers[0]!.port, (client) => client.script('FLUSH'));
    proxy.replies.delay = 300;
    const acquired = ask(master!, acquiring(['lock:a'], 'mine', { ttl: 200 }));
    await eventually(() => (master as RedisMaster)['data']?.votes === false);
    const answers: MasterReply[] = [];
    master!.ask(drawing(['lock:a'], 'mine'), (answer) => answers.push(answer));
    expect(answers).toMatchObject([{ kind: 'quarantined', sent: false }]);
    expect(await acquired).toMatchObject({ kind: 'granted' });
  });

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
