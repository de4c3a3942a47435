import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Lock } from '../../lib/core/lock.js';
import type { LockObserver } from '../../lib/core/observer.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { cli, type Ended } from '../support/cli.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { Sentinel } from '../support/sentinel.js';
import { deadPort } from '../support/dead-port.js';

jest.setTimeout(120_000);

const GROUP = 'locks';

/** A port that accepts connections and never answers: a sentinel that hangs. */
class Silence implements AsyncDisposable {
  private readonly sockets: Socket[] = [];

  private constructor(
    readonly port: number,
    private readonly server: Server,
  ) {
    server.on('connection', (socket) => this.sockets.push(socket.on('error', () => undefined)));
  }

  static async listen(): Promise<Silence> {
    const port = await deadPort();
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new Silence(port, server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}

/** A port whose machine seems to be off: nothing answers, not even the attempt to connect. */
class SwitchedOff implements AsyncDisposable {
  private constructor(
    private readonly server: RedisServer,
    private readonly sockets: readonly Socket[],
  ) {}

  /** A server that is stopped accepts nothing, and its system leaves new connections unanswered once its queue is full. */
  static async listen(): Promise<SwitchedOff> {
    const server = await RedisServer.start({ args: ['--tcp-backlog', '1'] });
    server.pause();
    const sockets: Socket[] = [];
    for (let isFull = false; !isFull;) {
      const socket = createConnection({ port: server.port, host: '127.0.0.1' }).on('error', () => undefined);
      sockets.push(socket);
      isFull = await Promise.race([once(socket, 'connect').then(() => false), setTimeout(500, true)]);
    }
    return new SwitchedOff(server, sockets);
  }

  get port(): number {
    return this.server.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await this.server.stop();
  }
}

describe('A group that three sentinels watch', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let single: RedisServer;
  let sentinels: readonly Sentinel[];

  beforeEach(async () => {
    primary = await RedisServer.start();
    single = await RedisServer.start();
    replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${primary.port}`] });
    sentinels = await Sentinel.group(GROUP, primary.port, 3);
  });

  afterEach(async () => {
    await Promise.all(sentinels.map((sentinel) => sentinel[Symbol.asyncDispose]()));
    await Promise.all([primary.stop(), replica.stop(), single.stop()]);
  });

  const url = (ports = sentinels.map(({ port }) => port)): string =>
    `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${GROUP}`;

  const guarded = { ttl: 2_000, maxTtl: 2_000, masterTimeout: 500, restartGuard: true } as const;

  const contender = (source: string, options: RedlockOptions, observer: LockObserver = {}): Promise<Contender> =>
    Contender.on([source], options, observer, { within: 30_000 });

  /** Resolves when most sentinels name the promoted server. */
  async function failOver(): Promise<void> {
    await command(sentinels[0]?.port ?? 0, 'SENTINEL', 'FAILOVER', GROUP);
    await eventually(async () => {
      const named = await Promise.all(sentinels.map((sentinel) => sentinel.primary(GROUP)));
      return named.filter((port) => port === replica.port).length >= 2;
    }, 30_000);
  }

  // Protocol 13.1 and 13.2
  it('never has two holders after a planned failover, while the old primary still calls itself one', async () => {
    await using before = await contender(url(), guarded);
    const locks: Lock[] = [];
    const grants: string[] = [];
    const overlaps: string[] = [];
    const take = async (name: string, from: Contender): Promise<void> => {
      const lock = await from.acquire('a', undefined, { wait: 0 }).catch(() => undefined);
      if (!lock) return;
      if (locks.some(({ isHeld }) => isHeld)) overlaps.push(name);
      grants.push(name);
      locks.push(lock);
      // The first process keeps its lock on the old primary for as long as that extends it.
      await eventually(() => !lock.isHeld || grants.includes('after'), 30_000);
      await lock.release().catch(() => undefined);
    };
    await eventually(() => before.redlock.status().masters[0]?.state === 'voting', 30_000);
    const contention = new AbortController();
    const contend = async (name: string, from: Contender): Promise<void> => {
      while (!contention.signal.aborted) {
        await take(name, from);
        // A refusal at once must not keep the process from reading its input.
        await setImmediate();
      }
    };
    const first = contend('before', before);
    await eventually(() => grants.length > 0, 30_000);
    await failOver();
    expect(String((await command(primary.port, 'ROLE')) as unknown[])).toContain('master');
    await using after = await contender(url(), guarded);
    const second = contend('after', after);
    await eventually(() => grants.includes('after'), 30_000);
    contention.abort();
    await Promise.all([first, second]);
    expect(overlaps).toEqual([]);
  });

  it('needs a majority of all sentinels, although only one of them is listed', async () => {
    const [first] = sentinels;
    await using holder = await contender(url([first?.port ?? 0]), guarded);
    await (await holder.acquire('a', undefined, { wait: '30s' })).release();
    const reasons: string[] = [];
    await Promise.all(sentinels.slice(1).map((sentinel) => sentinel[Symbol.asyncDispose]()));
    await eventually(async () => {
      const lock = await holder.acquire('b').catch((error: unknown) => void reasons.push(String(error)));
      await lock?.release();
      return lock === undefined;
    }, 30_000);
    expect(reasons.at(-1)).toMatch(/a majority of its sentinels \(2 of 3\) must name its address: 1 of 3 name 127/);
  });

  it('is guarded as well where it is given as an ioredis client, without the user noticing the connections', async () => {
    const client = new Redis({
      sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
      ...{ name: GROUP, lazyConnect: true },
    });
    await using holder = await Contender.on([client], guarded, {}, { within: 30_000 });
    await (await holder.acquire('a', undefined, { wait: '30s' })).release();
    await failOver();
    // A view that was sent just before counts for a second; then no vote of the old primary does, which calls itself one.
    await eventually(async () => {
      const lock = await holder.acquire('a', undefined, { wait: 0 }).catch(() => undefined);
      await lock?.release();
      return lock === undefined;
    }, 3_000);
    expect(String((await command(primary.port, 'ROLE')) as unknown[])).toContain('master');
    expect(client.status).toBe('wait');
  });

  describe.each([
    ['hangs', Silence],
    ['is on a machine that is off', SwitchedOff],
  ])('and whose first sentinel in the list %s', (_, broken) => {
    it('is found at boot within seconds', async () => {
      await using first = await broken.listen();
      const ports = [first.port, ...sentinels.map(({ port }) => port)];
      const began = performance.now();
      await using holder = await contender(url(ports), { restartGuard: false });
      await (await holder.acquire('a')).release();
      // The limits of ioredis are 10 s and more.
      expect(performance.now() - began).toBeLessThan(3_000);
    });

    it('is examined by the doctor, and named where no sentinel knows its name', async () => {
      await using first = await broken.listen();
      const ports = [first.port, ...sentinels.map(({ port }) => port)];
      const examine = (source: string): Promise<Ended> => cli(['doctor', '--master', source]);
      expect((await examine(url(ports))).stdout).toContain('1 of 1 master votes');
      const other = await examine(url(ports).replace(GROUP, 'other'));
      expect(other.stdout).toContain(`127.0.0.1:${first.port}: no answer within 1000 ms`);
      expect(other.stdout).toContain(': it watches no primary with the name other');
    });
  });

  it('follows a failover from a primary that hangs within seconds, without the guard', async () => {
    await using holder = await contender(url(), { ttl: '20s', maxTtl: '20s', masterTimeout: 500, restartGuard: false });
    const lock = await holder.acquire('a');
    await eventually(async () => (await command(replica.port, 'EXISTS', 'lock:a')) === 1, 10_000);
    primary.pause();
    const promoted = eventually(async () => (await sentinels[0]?.primary(GROUP)) === replica.port, 30_000);
    // Requests show that the primary hangs.
    const asking = eventually(async () => {
      const other = await holder.acquire('b').catch(() => undefined);
      await other?.release();
      return other !== undefined;
    }, 30_000);
    await promoted;
    const since = performance.now();
    await asking;
    expect(performance.now() - since).toBeLessThan(6_000);
    expect(lock.isHeld).toBe(true);
    primary.resume();
  });

  it('says that the sentinels do not know the name, and not that they cannot be reached', async () => {
    const [first] = sentinels;
    const wrong = `redis+sentinel://127.0.0.1:${first?.port ?? 0},127.0.0.1:1/other`;
    const attempt = Contender.on([wrong], { masterTimeout: 500 }, {}, { within: 2_000 });
    await expect(attempt).rejects.toThrow(
      /watches no primary with the name other.*127\.0\.0\.1:1: connect ECONNREFUSED/s,
    );
  });
});
