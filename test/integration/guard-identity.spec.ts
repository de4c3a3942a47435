import { describe, expect, it, jest } from '@jest/globals';
import { RedlockConfigError } from '../../lib/settings/config.error.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { MARKER } from '../support/guarded.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const TTL = 1_000;
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 250, restartGuard: true };

const masters = sharedMasters(3);
/** The first of the masters. */
const some = (count: number): readonly string[] => masters.urls.slice(0, count);

function stateOf(contender: Contender, index: number): string | undefined {
  return contender.redlock.masters.status().masters[index]?.state;
}

async function bootError(sources: readonly string[]): Promise<RedlockConfigError> {
  const error: unknown = await Contender.on(sources, OPTIONS).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RedlockConfigError);
  return error as RedlockConfigError;
}

// Protocol 8.5
describe('At boot', () => {
  // The later of the two connections is refused, whichever that is.
  it('refuses two addresses of one server, and names both', async () => {
    await using proxy = await TcpProxy.to(masters.servers[0]!.port);
    const { message } = await bootError([...some(2), proxy.url]);
    expect(message).toContain('it is the same server as');
    expect(message).toContain(`127.0.0.1:${proxy.port}`);
    expect(message).toContain(`127.0.0.1:${masters.servers[0]!.port}`);
  });

  it('refuses a replica', async () => {
    const [a, b] = masters.servers;
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    const { message } = await bootError(masters.urls);
    expect(message).toMatch(new RegExp(`it is a replica.*127\\.0\\.0\\.1:${b!.port}`));
  });

  it('refuses a cluster node', async () => {
    await using node = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
    expect((await bootError([...some(2), node.url])).message).toMatch(/node of a cluster/);
  });

  // Protocol 8.4
  it('refuses a server whose scripts may not use INFO, and names the permission and the option', async () => {
    const { port, url } = masters.servers[0]!;
    // The Redis client itself warns about the missing permission.
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    await command(port, 'ACL', 'SETUSER', 'locks', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const restricted = url.replace('redis://', 'redis://locks:secret@');
    const { message } = await bootError([restricted, ...masters.urls.slice(1)]);
    expect(message).toMatch(/INFO in scripts.*\+info, or restartGuard: false/);
    expect(await command(port, 'EXISTS', MARKER)).toBe(0);
    await using unguarded = await Contender.on([restricted], { ...OPTIONS, restartGuard: false });
    await (await unguarded.acquire('x', TTL, { wait: 0 })).release();
    warn.mockRestore();
  });

  it('warns once of a server that drops keys when its memory is full', async () => {
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
  it('excludes an address that has begun to lead to a server that already votes', async () => {
    const [a, b, c] = masters.servers;
    await using proxy = await TcpProxy.to(b!.port);
    const masterRefused = jest.fn();
    await using contender = await Contender.on([a!.url, proxy.url, c!.url], OPTIONS, { masterRefused });
    await eventually(() => [0, 1, 2].every((index) => stateOf(contender, index) === 'voting'));
    await c!.kill();
    await eventually(() => stateOf(contender, 2) === 'down');
    proxy.target = { port: a!.port };
    proxy.reset();
    await eventually(() => stateOf(contender, 1) === 'refused');
    for (let i = 0; i < 3; i++) await expect(contender.acquire(`x:${i}`, TTL, { wait: 0 })).rejects.toThrow();
    expect(stateOf(contender, 1)).toBe('refused');
    expect(contender.redlock.masters.status().canVote).toBe(false);
    expect(masterRefused.mock.calls).toEqual([
      [contender.masters[1]!.name, `it is the same server as ${contender.masters[0]!.name}`],
    ]);
  });
});
