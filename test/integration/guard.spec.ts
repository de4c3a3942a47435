import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisServer } from '../../scripts/redis-servers.mjs';
import type { Lock } from '../../lib/locks/lock.js';
import { QuorumUnavailableError } from '../../lib/redlock/errors.js';
import { cli, on } from '../support/cli.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { allVote, MARKER, states } from '../support/guarded.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(90_000);

const TTL = 2_000;
const GUARDED = { ttl: TTL, masterTimeout: 500, restartGuard: true };
/** From the end of the wait until a process that tries all the time has the lock, in milliseconds. */
const ENTERS_WITHIN = 2_000;

const flush = ({ port }: RedisServer): Promise<unknown> => command(port, 'FLUSHALL');
const restart = (server: RedisServer): Promise<void> => server.restart();
const each = (servers: readonly RedisServer[], lose: (server: RedisServer) => Promise<unknown>): Promise<unknown> =>
  Promise.all(servers.map(lose));

const KEEPS_ALL = ['--appendonly', 'yes', '--appendfsync', 'always'];

describe('A held lock that is extended, with a process that tries to get it all the time', () => {
  let masters: Masters;
  let holder: Contender;
  let rival: Contender;
  let lock: Lock;
  let token: unknown;
  let taken: Promise<{ readonly at: number; readonly wasHeld: boolean; readonly lock: Lock }>;

  async function begin(args: readonly string[]): Promise<void> {
    masters = await startMasters(3, { args });
    holder = await Contender.on(masters.urls, GUARDED);
    rival = await Contender.on(masters.urls, GUARDED);
    await allVote(holder);
    lock = await holder.acquire('stock', TTL, { extend: true });
    token = await command(masters.servers[0]!.port, 'GET', 'lock:stock');
  }

  function compete(): void {
    taken = rival.acquire('stock', TTL, { wait: '60s', extend: true }).then((next) => ({
      at: performance.now(),
      wasHeld: lock.isHeld,
      lock: next,
    }));
    // A test that fails closes the process that waits.
    taken.catch(() => undefined);
  }

  afterEach(async () => {
    await holder.close();
    await rival.close();
    await masters.stop();
  });

  /** Until extensions have set the key again, have found it, and have counted it: then the next master may lose it. */
  async function isSure({ port }: RedisServer): Promise<void> {
    let left = 0;
    let extensions = 0;
    await eventually(async () => {
      // The process that tries to get the lock may have the key of this master for a moment.
      const isOwn = (await command(port, 'GET', 'lock:stock')) === token;
      const now = isOwn ? Number(await command(port, 'PTTL', 'lock:stock')) : 0;
      if (!isOwn) extensions = 0;
      if (now > left) extensions++;
      left = now;
      return extensions === 3;
    });
  }

  async function inTurn(): Promise<void> {
    for (const [index, server] of masters.servers.entries()) {
      await (index === 1 ? flush : restart)(server);
      await eventually(() => !states(holder).every((state) => state === 'voting'));
      await allVote(holder);
      await isSure(server);
    }
  }

  const KEPT: readonly (readonly [string, readonly string[], () => Promise<unknown>, boolean])[] = [
    ['one master restarted empty', [], () => restart(masters.servers[0]!), false],
    ['one master restarted with an old copy', [], () => restart(masters.servers[0]!), true],
    ['one master restarted with all of its data', KEEPS_ALL, () => restart(masters.servers[0]!), false],
    ['all masters restarted empty or flushed, one after the other', [], () => inTurn(), false],
  ];

  it.each(KEPT)('stays with its holder, whose majority kept its data: %s', async (_, args, lose, hasCopy) => {
    await begin(args);
    if (hasCopy) {
      await lock.release();
      // What the server has after its restart.
      await command(masters.servers[0]!.port, 'SAVE');
      lock = await holder.acquire('stock', TTL, { extend: true });
    }
    compete();
    await lose();
    // Longer than the validity of the last extension before the loss, and than the wait of the master.
    await sleep(2 * TTL);
    expect([lock.isHeld, lock.loss]).toEqual([true, undefined]);
    await lock.release();
    const { wasHeld, lock: next } = await taken;
    expect(wasHeld).toBe(false);
    await next.release();
  });

  const LOST: readonly (readonly [string, readonly string[], () => Promise<unknown>])[] = [
    ['restarted empty', [], () => each(masters.servers, restart)],
    ['restarted with all of their data', KEEPS_ALL, () => each(masters.servers, restart)],
    ['flushed', [], () => each(masters.servers, flush)],
    ['two of three of them restarted empty', [], () => each(masters.servers.slice(1), restart)],
  ];

  it.each(LOST)(
    'is never held by two, and can be had after `maxTtl`: all masters %s at once',
    async (_, args, lose) => {
      await begin(args);
      compete();
      const began = performance.now();
      await lose();
      const lost = performance.now();
      const { at, wasHeld, lock: next } = await taken;
      expect(wasHeld).toBe(false);
      expect(at - began).toBeGreaterThanOrEqual(TTL);
      expect(at - lost).toBeLessThanOrEqual(TTL + ENTERS_WITHIN);
      await next.release();
    },
  );
});

describe('Masters with the guard', () => {
  const masters = sharedMasters(3);
  let contender: Contender;

  beforeEach(async () => {
    contender = await Contender.on(masters.urls, GUARDED);
  });
  afterEach(() => contender.close());

  // Protocol 8.2
  it('wait for `maxTtl` when they are new, say so, and are asked by a call that waits as soon as they vote', async () => {
    const error: unknown = await contender.acquire('x', TTL, { wait: 0 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(QuorumUnavailableError);
    expect(String(error)).toMatch(
      /waits \d+(?:\.\d)? m?s because it is new, then votes by itself \(see restartGuard\)/,
    );
    expect(contender.redlock.masters.status()).toMatchObject({ canVote: false });
    const lock = await contender.acquire('x', TTL, { wait: '30s' });
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });

  it('lose no request and no vote after SCRIPT FLUSH', async () => {
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

  it('refuse a key of another program under the name of their marker, and the status says so', async () => {
    await allVote(contender);
    for (const { port } of masters.servers) {
      await command(port, 'DEL', MARKER);
      await command(port, 'SET', MARKER, 'foreign');
    }
    await expect(contender.acquire('x', TTL, { wait: 0 })).rejects.toThrow(/WRONGTYPE/);
    const foreign = { state: 'refused', reason: expect.stringContaining('has overwritten the marker') };
    const status = { canVote: false, masters: [foreign, foreign, foreign] };
    expect(contender.redlock.masters.status().canVote).toBe(false);
    expect(await contender.redlock.masters.probe()).toMatchObject(status);
    // A process that connects now, and the doctor, say the same.
    await expect(Contender.on(masters.urls, { restartGuard: true })).rejects.toThrow(/has overwritten the marker/);
    const { stdout } = await cli(['doctor', ...on(masters.urls)]);
    expect(stdout).toContain('WRONGTYPE another program has overwritten the marker of the restart guard');
    expect(stdout).toContain('0 of 3 masters vote');

    for (const { port } of masters.servers) await command(port, 'DEL', MARKER);
    await contender.redlock.masters.probe();
    expect(states(contender)).toEqual(['quarantined', 'quarantined', 'quarantined']);
  });

  it('refuse to vote if their markers are lost and their user may not use INFO any more, and the status says so', async () => {
    await allVote(contender);
    const ask = (name: string, ...words: string[]) =>
      Promise.all(masters.servers.map(({ port }) => command(port, name, ...words)));
    await ask('ACL', 'SETUSER', 'default', '-info');
    await expect(contender.acquire('x', TTL, { wait: 0 }).then((lock) => lock.release())).resolves.toBeUndefined();
    await ask('DEL', MARKER);
    await expect(contender.acquire('x', TTL, { wait: 0 })).rejects.toThrow(/lacks the permission \+info/);
    const refused = { state: 'refused', reason: expect.stringContaining('ACL SETUSER <its user> +info') };
    const status = { canVote: false, masters: [refused, refused, refused] };
    expect(contender.redlock.masters.status().canVote).toBe(false);
    expect(await contender.redlock.masters.probe()).toMatchObject(status);

    await ask('ACL', 'SETUSER', 'default', '+info');
    await contender.redlock.masters.probe();
    expect(states(contender)).toEqual(['quarantined', 'quarantined', 'quarantined']);
  });
});
