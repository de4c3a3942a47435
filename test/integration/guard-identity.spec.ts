import { describe, expect, it, jest } from '@jest/globals';
import { RedlockConfigError } from '../../lib/core/errors.js';
import { redisMaster } from '../../lib/redis/master-source.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { acquiring, ask, releasing } from '../support/ask.js';
import { buildClockShim } from '../support/clock-shim.js';
import { command } from '../support/command.js';
import { contextOf } from '../support/context.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { StickyProxy } from '../support/sticky-proxy.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const TTL = 1_000;
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 250, restartGuard: true };

function stateOf(contender: Contender, index: number): string | undefined {
  return contender.redlock.status().masters[index]?.state;
}

async function bootError(sources: readonly string[]): Promise<RedlockConfigError> {
  const error: unknown = await Contender.on(sources, OPTIONS).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RedlockConfigError);
  return error as RedlockConfigError;
}

describe('At boot', () => {
  it('two addresses of one server are refused, and both are named', async () => {
    await using masters = await startMasters(2);
    await using proxy = await TcpProxy.to(masters.servers[0]!.port);
    const { message } = await bootError([...masters.urls, proxy.url]);
    expect(message).toContain(`127.0.0.1:${proxy.port}`);
    expect(message).toContain(`the same server as 127.0.0.1:${masters.servers[0]!.port}`);
  });

  it('a replica is refused', async () => {
    await using masters = await startMasters(3);
    const [a, b] = masters.servers;
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    const { message } = await bootError(masters.urls);
    expect(message).toMatch(new RegExp(`it is a replica.*127\\.0\\.0\\.1:${b!.port}`));
  });

  it('a node of a cluster is refused', async () => {
    await using masters = await startMasters(2);
    const node = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
    try {
      expect((await bootError([...masters.urls, node.url])).message).toMatch(/node of a cluster/);
    } finally {
      await node.stop();
    }
  });

  it('a server that drops keys is a risk, which is told once', async () => {
    const masterAtRisk = jest.fn();
    await using masters = await startMasters(1, { args: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] });
    await using contender = await Contender.on(masters.urls, OPTIONS, { masterAtRisk });
    await command(masters.servers[0]!.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(() => stateOf(contender, 0) === 'down');
    await eventually(() => stateOf(contender, 0) !== 'down');
    expect(masterAtRisk.mock.calls).toEqual([[contender.masters[0]!.name, expect.stringContaining('allkeys-lru')]]);
  });
});

describe('At run time', () => {
  it('an address that leads to a server that votes already is excluded, even over the same connection', async () => {
    await using masters = await startMasters(3);
    const [a, b, c] = masters.servers;
    await using proxy = await StickyProxy.to(b!.port);
    const masterRefused = jest.fn();
    await using contender = await Contender.on([a!.url, proxy.url, c!.url], OPTIONS, { masterRefused });
    await eventually(() => [0, 1, 2].every((index) => stateOf(contender, index) === 'voting'));
    await c!.kill();
    await eventually(() => stateOf(contender, 2) === 'down');
    proxy.redirect(a!.port);
    for (let i = 0; i < 3; i++) await expect(contender.acquire(`x:${i}`, TTL, { wait: 0 })).rejects.toThrow();
    expect(stateOf(contender, 1)).toBe('refused');
    expect(contender.redlock.status().canVote).toBe(false);
    expect(masterRefused.mock.calls).toEqual([
      [contender.masters[1]!.name, `it is the same server as ${contender.masters[0]!.name}`],
    ]);
  });

  it('a server that does not tell who it is works all the same, after its quarantine', async () => {
    // The client's own words about the missing permission.
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    await using masters = await startMasters(1);
    const { port, url } = masters.servers[0]!;
    const everythingButInfo = ['on', '>secret', '~*', '&*', '+@all', '-info'];
    await command(port, 'ACL', 'SETUSER', 'locks', ...everythingButInfo);
    const restricted = url.replace('redis://', 'redis://locks:secret@');
    await using contender = await Contender.on([restricted], OPTIONS);
    expect(contender.redlock.status().masters[0]).toMatchObject({
      ...{ state: 'quarantined', reason: 'it does not tell since when it has run' },
    });
    await (await contender.acquire('x', TTL, { wait: '15s' })).release();
    expect(stateOf(contender, 0)).toBe('voting');
    await command(port, 'FLUSHALL');
    await expect(contender.acquire('x', TTL, { wait: 0 })).rejects.toThrow(/does not vote for/);
    warn.mockRestore();
  });
});

describe('A master whose clock is stepped forward by a minute', () => {
  it('does not vote for maxTtl', async () => {
    using shim = buildClockShim();
    if (!shim) {
      console.log('No C compiler, or not Linux: a stepped clock is tested in test/unit/redis/clock-guard.spec.ts only');
      return;
    }
    const server = await RedisServer.start({ env: shim.env });
    const told: string[] = [];
    const observer = {
      masterQuarantined: (_: string, reason: string, left: number) => void told.push(`${reason}: ${left > 0}`),
      masterVotesAgain: () => void told.push('votes again'),
    };
    const master = redisMaster('masters[0]', server.url, contextOf(OPTIONS, observer));
    try {
      await master.connect();
      await eventually(() => master.identity().quarantine === undefined);
      await eventually(() => told.at(-1) !== undefined && told.at(-1) === 'votes again');
      const options = { ttl: TTL, explain: true };
      expect(await ask(master, acquiring(['a'], 'first', options))).toMatchObject({ kind: 'granted' });
      shim.step(60_000);
      // Valkey 9 reads the wall clock once per turn of its event loop, and adds a monotonic clock in between.
      await eventually(async () => {
        const [seconds] = (await command(server.port, 'TIME')) as string[];
        return Number(seconds) * 1_000 > Date.now() + 30_000;
      });
      // Without the step it would be held.
      const answers = [
        ask(master, acquiring(['a'], 'second', options)),
        ask(master, acquiring(['b'], 'third', options)),
      ];
      for (const answer of await Promise.all(answers)) {
        expect(answer).toMatchObject({
          ...{ kind: 'quarantined', reason: expect.stringMatching(/its clock jumped forward by (59\d|60\d)\d\d ms/) },
        });
      }
      await ask(master, releasing(['a', 'b'], 'second'));

      // A client that comes now learns it from the marker.
      const other = redisMaster('masters[0]', server.url, contextOf(OPTIONS));
      await other.connect();
      expect(other.identity().quarantine).toBeDefined();
      await other.close();
      await eventually(() => master.identity().quarantine === undefined);
      expect(await ask(master, acquiring(['c'], 'fourth', options))).toMatchObject({ kind: 'granted' });
      await eventually(() => told.length >= 4);
      expect(told.slice(-2)).toEqual([expect.stringMatching(/its clock jumped forward by .*: true/), 'votes again']);
      expect(told.filter((line) => line.includes('clock'))).toHaveLength(1);
    } finally {
      await master.close();
      await server.stop();
    }
  });

  it('is noticed by a client that has not locked anything yet, and over a new connection', async () => {
    using shim = buildClockShim();
    if (!shim) return;
    const server = await RedisServer.start({ env: shim.env });
    const master = redisMaster('masters[0]', server.url, contextOf(OPTIONS));
    try {
      await master.connect();
      await eventually(() => master.identity().quarantine === undefined);
      shim.step(60_000);
      master.reconnect();
      await eventually(() => master.identity().quarantine !== undefined);
      expect(master.identity().quarantine?.reason).toMatch(/its clock jumped/);
    } finally {
      await master.close();
      await server.stop();
    }
  });
});
