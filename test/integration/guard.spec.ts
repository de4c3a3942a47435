import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../lib/core/errors.js';
import type { Lock } from '../../lib/core/lock.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { StickyProxy } from '../support/sticky-proxy.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const TTL = 3_000;
// Nothing here is about speed: a machine that is busy with other tests must not lose votes.
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 500 };
const GUARDED = { ...OPTIONS, restartGuard: true };
const UNGUARDED = { ...OPTIONS, restartGuard: false };

function states(contender: Contender): string[] {
  return contender.redlock.status().masters.map(({ state }) => state);
}

async function allVote(contender: Contender): Promise<void> {
  await eventually(() => states(contender).every((state) => state === 'voting'));
}

/** A server that has just fed a replica may still be saving for that. */
async function save(port: number): Promise<void> {
  await eventually(() => command(port, 'SAVE').then(Boolean, () => false));
}

async function isUpFor(port: number, seconds: number): Promise<boolean> {
  const [, uptime] = /uptime_in_seconds:(\d+)/.exec(String(await command(port, 'INFO', 'server'))) ?? [];
  return Number(uptime) >= seconds;
}

describe('A lock on two of three masters, one of which forgets it', () => {
  let masters: Masters;
  let replica: RedisServer;
  let sticky: StickyProxy;
  let apart: TcpProxy;
  let a: RedisServer;
  let stocks = 0;

  beforeEach(async () => {
    sticky = await StickyProxy.to(a.port);
    apart = await TcpProxy.to(masters.servers[2]!.port);
  });
  beforeAll(async () => {
    masters = await startMasters(3);
    a = masters.servers[0]!;
    replica = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
  });
  afterEach(async () => {
    await sticky.close();
    await apart.close();
  });
  afterAll(async () => {
    await replica.stop();
    await masters.stop();
  });

  interface Fault {
    readonly address: () => string;
    readonly before?: () => Promise<unknown>;
    readonly forget: () => Promise<unknown>;
    readonly after?: () => Promise<unknown>;
  }

  const FAULTS: readonly (readonly [string, Fault])[] = [
    ['kill -9 and an empty restart', { address: () => a.url, forget: () => a.restart() }],
    ['the same behind a proxy that keeps the connections', { address: () => sticky.url, forget: () => a.restart() }],
    ['FLUSHALL', { address: () => a.url, forget: () => command(a.port, 'FLUSHALL') }],
    [
      'failover to a replica that lags, behind a proxy that keeps the connections',
      {
        address: () => sticky.url,
        before: async () => {
          await command(replica.port, 'REPLICAOF', '127.0.0.1', a.port);
          await eventually(async () => String(await command(replica.port, 'ROLE')).includes('connected'));
          await command(replica.port, 'REPLICAOF', 'NO', 'ONE');
        },
        forget: () => {
          sticky.redirect(replica.port);
          return Promise.resolve();
        },
      },
    ],
    [
      'a restart with an RDB file from before',
      {
        address: () => a.url,
        before: () => save(a.port),
        forget: () => a.restart(),
        after: () => command(a.port, 'FLUSHALL').then(() => save(a.port)),
      },
    ],
  ];

  /** Whether somebody else gets the lock while its holder still relies on it. */
  async function isViolated(fault: Fault, options: typeof GUARDED): Promise<boolean> {
    const [, b, c] = masters.servers;
    // What the one before has left must not matter.
    const resource = `stock:${++stocks}`;
    const sources = [fault.address(), b!.url, c!.url];
    await using holder = await Contender.on([fault.address(), b!.url, apart.url], options);
    await using rival = await Contender.on(sources, options);
    await allVote(holder);
    await allVote(rival);
    await fault.before?.();
    apart.refuse = true;
    apart.reset();
    await eventually(() => states(holder)[2] === 'down');

    const lock = await holder.acquire(resource, TTL, { wait: 0 });
    const { accepted } = sticky;
    await fault.forget();
    const late = Contender.on(sources, options);
    const take = async (contender: Contender): Promise<boolean> => {
      const taken = await contender.acquire(resource, TTL, { wait: '15s' });
      const isViolation = lock.isHeld;
      await taken.release();
      return isViolation;
    };
    const newcomer = await late;
    const violations = await Promise.all([take(rival), take(newcomer)]);
    // The connections of those who were there are the same: only the newcomer opened one.
    if (fault.address() === sticky.url) expect(sticky.accepted - accepted).toBeLessThanOrEqual(3);
    await newcomer.close();
    await fault.after?.();
    return violations.includes(true);
  }

  it.each(FAULTS)(
    'is safe with the guard: %s',
    async (_, fault) => {
      expect(await isViolated(fault, GUARDED)).toBe(false);
    },
    60_000,
  );

  it.each(FAULTS)(
    'is not safe without it: %s',
    async (_, fault) => {
      expect(await isViolated(fault, UNGUARDED)).toBe(true);
    },
    60_000,
  );

  it('SCRIPT FLUSH costs no request and no vote', async () => {
    await using contender = await Contender.on(masters.urls, GUARDED);
    await allVote(contender);
    for (let i = 0; i < 20; i++) {
      await Promise.all(masters.servers.map(({ port }) => command(port, 'SCRIPT', 'FLUSH')));
      const lock = await contender.acquire(`scripts:${i}`, TTL, { wait: 0 });
      await Promise.all(masters.servers.map(({ port }) => command(port, 'SCRIPT', 'FLUSH')));
      await lock.extend();
      await lock.release();
      expect(states(contender)).toEqual(['voting', 'voting', 'voting']);
    }
  });
});

describe('Three masters that are restarted', () => {
  const SHORT = 1_000;
  const SETTINGS = { ttl: SHORT, maxTtl: SHORT, masterTimeout: 250, restartGuard: true };
  let masters: Masters;
  let contender: Contender;

  beforeEach(async () => {
    masters = await startMasters(3);
    contender = await Contender.on(masters.urls, SETTINGS);
    await allVote(contender);
  });
  afterEach(async () => {
    await contender.close();
    await masters.stop();
  });

  it('one after the other: nobody is interrupted', async () => {
    const held: Lock = await contender.acquire('held', SHORT, { extend: true });
    const over = new AbortController();
    let acquired = 0;
    const others = (async () => {
      while (!over.signal.aborted) {
        const lock = await contender.acquire(`other:${acquired}`, SHORT, { wait: '2s' });
        acquired++;
        await lock.release();
      }
    })();
    for (const server of masters.servers) {
      await server.restart();
      await eventually(() => !states(contender).every((state) => state === 'voting'));
      await allVote(contender);
      // The extension has healed the lock there.
      await eventually(async () => (await command(server.port, 'EXISTS', 'lock:held')) === 1);
      expect(held.isHeld).toBe(true);
    }
    over.abort();
    await others;
    expect(acquired).toBeGreaterThan(3);
    await held.release();
  }, 60_000);

  it('two at once: nobody gets a lock for maxTtl, is told why, and then everything works', async () => {
    const [a, b] = masters.servers;
    await Promise.all([a!.restart(), b!.restart()]);
    await eventually(() => states(contender).filter((state) => state === 'quarantined').length === 2);
    const error = await contender.acquire('x', SHORT, { wait: 0 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(QuorumUnavailableError);
    for (const { port } of [a!, b!]) {
      const told = `127\\.0\\.0\\.1:${port}: does not vote for \\d+ ms more, it was started .* \\(see restartGuard\\)`;
      expect(String(error)).toMatch(new RegExp(told));
    }
    expect(contender.redlock.status()).toMatchObject({ canVote: false, quorum: 2 });
    const lock = await contender.acquire('x', SHORT, { wait: '10s' });
    expect(lock.isHeld).toBe(true);
    expect(contender.redlock.status().canVote).toBe(true);
  }, 60_000);

  it('a master that waits takes heals and releases, and what it refuses counts', async () => {
    const [a, b, c] = masters.servers;
    const lock = await contender.acquire('x', SHORT, { extend: false });
    await a!.restart();
    await eventually(() => states(contender)[0] === 'quarantined');
    await lock.extend();
    expect(await command(a!.port, 'EXISTS', 'lock:x')).toBe(1);
    await b!.kill();
    await c!.kill();
    await eventually(() => states(contender).join() === 'quarantined,down,down');
    const { masters: answers } = await contender.redlock.inspect('x');
    expect(answers[0]?.answer).toMatchObject({ kind: 'held' });
    await lock.release();
    await eventually(async () => (await command(a!.port, 'EXISTS', 'lock:x')) === 0);
  }, 60_000);
});

describe('Masters that are met for the first time', () => {
  it('wait if they were started a short while ago, which is told once; later clients need not wait', async () => {
    const told: string[] = [];
    await using masters = await startMasters(3);
    const settings = { ttl: 1_000, maxTtl: 1_000, masterTimeout: 250, restartGuard: true };
    await using contender = await Contender.on(masters.urls, settings, {
      masterQuarantined: (master, reason, left) => told.push(`${master} waits, ${reason}: ${left > 0}`),
      masterVotesAgain: (master) => told.push(`${master} votes`),
    });
    await expect(contender.acquire('x', 1_000, { wait: 0 })).rejects.toBeInstanceOf(QuorumUnavailableError);
    await using second = await Contender.on(masters.urls, settings);
    expect(second.redlock.status().canVote).toBe(false);
    await (await contender.acquire('x', 1_000, { wait: '15s' })).release();
    await eventually(() => told.length === 6);
    const expected = masters.servers.flatMap(({ port }) => [
      `127.0.0.1:${port} waits, it was started a short while ago: true`,
      `127.0.0.1:${port} votes`,
    ]);
    expect(told.sort()).toEqual(expected.sort());

    // Without their marker these servers are as good as never seen, but up for long enough.
    await Promise.all(masters.servers.map(({ port }) => eventually(() => isUpFor(port, 4))));
    await Promise.all(masters.servers.map(({ port }) => command(port, 'FLUSHALL')));
    await using third = await Contender.on(masters.urls, settings);
    await (await third.acquire('x', 1_000, { wait: 0 })).release();
  }, 30_000);

  it('may have to wait longer for longer locks, and keep that', async () => {
    await using masters = await startMasters(1);
    await using short = await Contender.on(masters.urls, { ttl: 1_000, maxTtl: 1_000, restartGuard: true });
    await using long = await Contender.on(masters.urls, { ttl: 1_000, maxTtl: 20_000, restartGuard: true });
    const marker = (): Promise<unknown> => command(masters.servers[0]!.port, 'HGET', 'lock:\0incarnation', 'max');
    expect(await marker()).toBe('20000');
    expect(long.redlock.status().masters[0]?.remaining).toBeGreaterThan(5_000);
    await expect(short.acquire('x', 1_000, { wait: 0 })).rejects.toBeInstanceOf(QuorumUnavailableError);
    expect(await marker()).toBe('20000');
  });
});
