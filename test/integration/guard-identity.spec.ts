import { describe, expect, it, jest } from '@jest/globals';
import { RedlockConfigError } from '../../lib/core/errors.js';
import type { Instant, Timer } from '../../lib/core/clock.js';
import { SystemClock } from '../../lib/runtime/system-clock.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { buildClockShim } from '../support/clock-shim.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { StickyProxy } from '../support/sticky-proxy.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const TTL = 1_000;
const MARKER = 'lock:\0incarnation';
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 250, restartGuard: true };

const masters = sharedMasters(3);
/** The first of the masters. */
const some = (count: number): readonly string[] => masters.urls.slice(0, count);

function stateOf(contender: Contender, index: number): string | undefined {
  return contender.redlock.status().masters[index]?.state;
}

async function bootError(sources: readonly string[]): Promise<RedlockConfigError> {
  const error: unknown = await Contender.on(sources, OPTIONS).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RedlockConfigError);
  return error as RedlockConfigError;
}

// Protocol 8.10
describe('At boot', () => {
  it('refuses two addresses of one server, and names both', async () => {
    await using proxy = await TcpProxy.to(masters.servers[0]!.port);
    const { message } = await bootError([...some(2), proxy.url]);
    expect(message).toContain(`127.0.0.1:${proxy.port}`);
    expect(message).toContain(`the same server as 127.0.0.1:${masters.servers[0]!.port}`);
  });

  it.each(['localhost', '127.1'])(
    'refuses another way to write the address of a server, which text does not show: %s',
    async (host) => {
      const [{ port, url }, other] = masters.servers as [RedisServer, RedisServer];
      const { message } = await bootError([url, other.url, `redis://${host}:${port}`]);
      expect(message).toContain(`${host}:${port}`);
      expect(message).toContain(`the same server as 127.0.0.1:${port}`);
    },
  );

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
  // Protocol 8.1 and 8.10
  it('excludes an address that leads to a server that already votes, even over the same connection', async () => {
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

  it('lets a server vote after its quarantine although INFO is not permitted, and warns of it once', async () => {
    const masterAtRisk = jest.fn();
    // The Redis client itself warns about the missing permission.
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const { port, url } = masters.servers[0]!;
    const everythingButInfo = ['on', '>secret', '~*', '&*', '+@all', '-info'];
    await command(port, 'ACL', 'SETUSER', 'locks', ...everythingButInfo);
    const restricted = url.replace('redis://', 'redis://locks:secret@');
    await using contender = await Contender.on([restricted], OPTIONS, { masterAtRisk });
    await eventually(() => contender.redlock.status().masters[0]?.reason === 'its data is new to all processes');
    await (await contender.acquire('x', TTL, { wait: '15s' })).release();
    expect(stateOf(contender, 0)).toBe('voting');
    await command(port, 'FLUSHALL');
    await expect(contender.acquire('x', TTL, { wait: 0 })).rejects.toThrow(/does not vote/);
    expect(masterAtRisk.mock.calls).toEqual([
      [contender.masters[0]!.name, expect.stringContaining('does not permit INFO in scripts')],
    ]);
    warn.mockRestore();
  });
});

/** A clock that can stand still for a while, like the clock of a virtual machine during a migration. */
class StunnedClock extends SystemClock {
  private behind = 0;

  stun(milliseconds: number): void {
    this.behind += milliseconds;
  }

  override read(): Instant {
    const { monotonic, wall } = super.read();
    return { monotonic: monotonic - this.behind, wall: wall - this.behind };
  }

  /** By the clock of the machine, which the readings do not show. */
  override schedule(delay: number, callback: () => void, slack?: number): Timer {
    return super.schedule(delay, callback, slack);
  }
}

/**
 * Starts three servers, the first with a clock that can be set. Returns `undefined` where the clock shim cannot be
 * built.
 */
async function startShimmed(): Promise<(Masters & { step(milliseconds: number): void }) | undefined> {
  const shim = buildClockShim();
  if (!shim) return undefined;
  const first = await RedisServer.start({ env: shim.env });
  const others = await startMasters(2);
  const stop = async (): Promise<void> => {
    await Promise.all([first.stop(), others.stop()]);
    shim[Symbol.dispose]();
  };
  const urls = [first.url, ...others.urls];
  const servers = [first, ...others.servers];
  return { servers, urls, stop, step: (milliseconds) => shim.step(milliseconds), [Symbol.asyncDispose]: stop };
}

// Protocol 8.11
describe('A master whose clock is stepped forward', () => {
  const STEPS = [
    ['by a minute', 60_000],
    ['by less than the drift of the default ttl', 80],
  ] as const;

  it.each(STEPS)('loses its vote for all processes: %s', async (_, step) => {
    await using masters = await startShimmed();
    if (!masters) {
      console.log(
        'No C compiler, or not Linux: a stepped clock is tested in test/unit/redis/guard/server-clock.spec.ts only',
      );
      return;
    }
    const reported: string[] = [];
    const observer = { masterQuarantined: (_: string, reason: string) => void reported.push(reason) };
    await using contender = await Contender.on(masters.urls, OPTIONS, observer);
    await using idle = await Contender.on(masters.urls, OPTIONS);
    await eventually(() => [0, 1, 2].every((index) => stateOf(contender, index) === 'voting'));
    await eventually(() => [0, 1, 2].every((index) => stateOf(idle, index) === 'voting'));
    await (await contender.acquire('before', TTL)).release();
    reported.length = 0;
    masters.step(step);
    await eventually(async () => {
      await (await contender.acquire('after', TTL, { wait: '5s' })).release();
      return stateOf(contender, 0) === 'quarantined';
    });
    await eventually(() => reported.length > 0);
    expect(reported).toEqual([expect.stringMatching(/^its clock jumped forward by \d+ ms$/)]);
    const nonce = await command(masters.servers[0]!.port, 'HGET', MARKER, 'nonce');
    await using late = await Contender.on(masters.urls, OPTIONS);
    expect(stateOf(late, 0)).toBe('quarantined');
    // A process that notices the step later accepts the marker that another process wrote after the step.
    await (await idle.acquire('idle', TTL, { wait: '5s' })).release();
    expect(await command(masters.servers[0]!.port, 'HGET', MARKER, 'nonce')).toBe(nonce);
    await eventually(() => [contender, idle, late].every((each) => stateOf(each, 0) === 'voting'));
  });
});

// Protocol 8.11
it("A process whose own clocks stood still shortens its own locks, and removes no master's vote for other processes", async () => {
  const clock = new StunnedClock();
  const clientClockLagged = jest.fn();
  const options = { ...OPTIONS, ttl: '5s', maxTtl: '5s' } as const;
  await using healthy = await Contender.on(masters.urls, options);
  await using sick = await Contender.on(masters.urls, options, { clientClockLagged }, { clock });
  await eventually(() => [0, 1, 2].every((index) => stateOf(healthy, index) === 'voting'));
  const kept = await healthy.acquire('kept', '5s', { extend: true });
  const lock = await sick.acquire('mine', '5s');
  const before = lock.remaining();
  clock.stun(2_000);
  await eventually(() => clientClockLagged.mock.calls.length > 0);
  // Its own clock alone would show two seconds more.
  expect(lock.remaining()).toBeLessThan(before + 100);
  for (let i = 0; i < 5; i++) await (await sick.acquire(`other:${i}`, '5s', { wait: '2s' })).release();
  expect([0, 1, 2].map((index) => stateOf(healthy, index))).toEqual(['voting', 'voting', 'voting']);
  await kept.extend();
  expect(kept.isHeld).toBe(true);
  await Promise.all([kept.release(), lock.release()]);
});
