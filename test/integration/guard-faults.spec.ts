import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { StickyProxy } from '../support/sticky-proxy.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { follow } from './support/replicas.js';
import { allVote, GUARDED, OPTIONS, states, TTL } from '../support/guarded.js';

jest.setTimeout(60_000);

const UNGUARDED = { ...OPTIONS, restartGuard: false };

/** Saves, with retries: a server that has just synchronized a replica may still be saving for it. */
async function save(port: number): Promise<void> {
  await eventually(() => command(port, 'SAVE').then(Boolean, () => false));
}

describe('A lock on two of three masters, one of which loses it', () => {
  let masters: Masters;
  let replica: RedisServer;
  let spare: RedisServer;
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
    spare = await RedisServer.start();
  });
  afterEach(async () => {
    await sticky.close();
    await apart.close();
  });
  afterAll(async () => {
    await replica.stop();
    await spare.stop();
    await masters.stop();
  });

  interface Fault {
    readonly address: () => string;
    readonly before?: () => Promise<unknown>;
    readonly forget: () => Promise<unknown>;
    readonly after?: () => Promise<unknown>;
  }

  /** Promotes the replica, which has the marker but none of the locks taken from now on. */
  async function promoteReplica(): Promise<void> {
    await follow(replica.port, a.port);
    await command(replica.port, 'REPLICAOF', 'NO', 'ONE');
  }

  /** Makes the old primary a replica of the new one, and promotes it again. */
  async function failBack(): Promise<void> {
    await follow(a.port, replica.port);
    // A history is compared once a second: REPLICAOF by hand must leave that time, or close the connections.
    await sleep(1_100);
    await command(a.port, 'REPLICAOF', 'NO', 'ONE');
  }

  const FAULTS: readonly (readonly [string, Fault])[] = [
    ['kill -9 and an empty restart', { address: () => a.url, forget: () => a.restart() }],
    ['the same behind a proxy that keeps the connections', { address: () => sticky.url, forget: () => a.restart() }],
    ['FLUSHALL', { address: () => a.url, forget: () => command(a.port, 'FLUSHALL') }],
    [
      'failover to a replica that lags, behind a proxy that keeps the connections',
      {
        address: () => sticky.url,
        before: promoteReplica,
        forget: () => {
          sticky.redirect(replica.port);
          return Promise.resolve();
        },
      },
    ],
    [
      'an empty spare that has been up for long, behind the address of a dead master',
      {
        address: () => sticky.url,
        forget: () => {
          sticky.redirect(spare.port);
          return Promise.resolve();
        },
        after: () => command(spare.port, 'FLUSHALL'),
      },
    ],
    ['failback in the same process', { address: () => a.url, before: promoteReplica, forget: failBack }],
    [
      'failback in the same process, with all connections killed',
      {
        address: () => a.url,
        before: promoteReplica,
        forget: async () => {
          await failBack();
          await command(a.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
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

  /** Returns whether another process gets the lock while its holder still relies on it. */
  async function isViolated(fault: Fault, options: typeof GUARDED): Promise<boolean> {
    const [, b, c] = masters.servers;
    // A resource of its own isolates each fault from leftovers of the previous fault.
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

    // A master whose replica came and went before a process looked waits once.
    const lock = await holder.acquire(resource, TTL, { wait: '15s' });
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
    // The older connections still exist. Only the newcomer opened one.
    if (fault.address() === sticky.url) expect(sticky.accepted - accepted).toBeLessThanOrEqual(3);
    await newcomer.close();
    await fault.after?.();
    return violations.includes(true);
  }

  // Protocol 8.1
  it.each(FAULTS)('is safe with the guard: %s', async (_, fault) => {
    expect(await isViolated(fault, GUARDED)).toBe(false);
  });

  it.each(FAULTS)('is not safe without it: %s', async (_, fault) => {
    expect(await isViolated(fault, UNGUARDED)).toBe(true);
  });

  // Protocol 8.1
  it('loses no request and no vote after SCRIPT FLUSH', async () => {
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
