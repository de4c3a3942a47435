import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { boot, closeAll, logs } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { jobUnder, LocksPerTest } from './support/locks.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { throwing } from '../support/throwing.js';
import { shared } from '../support/shared.js';

jest.setTimeout(120_000);

describe('What the library refuses', () => {
  const anything = (value: unknown): never => value as never;

  const locks = new LocksPerTest(3);
  let service: LockService;

  beforeEach(async () => {
    service = (await boot({ imports: [locks.module()] })).get(LockService);
  });

  const failure = new TypeError('no such property');
  const fail = throwing(failure);

  it.each<[string, () => string, () => Promise<string>]>([
    ['its key function throws', fail, async () => 'ran'],
    ['it throws at once itself', () => 'a', fail],
  ])('A method fails with a rejection if %s', async (_, key, work) => {
    const Job = jobUnder(key, {}, work);
    const app = await boot({ imports: [locks.module()], providers: [Job] });
    const call = app.get(Job).run();
    await expect(call).rejects.toBe(failure);
  });

  describe('LockService refuses', () => {
    it.each([[''], [7]])('%p as a resource', async (resource) => {
      const refusal = { name: 'RedlockConfigError', option: 'resource' };
      await expect(service.acquire(anything(resource))).rejects.toMatchObject(refusal);
      await expect(service.tryAcquire(anything(resource))).rejects.toMatchObject(refusal);
      await expect(service.withLock(anything(resource), 100, () => 'ran')).rejects.toMatchObject(refusal);
      await expect(service.inspect(anything(resource))).rejects.toMatchObject(refusal);
    });
  });

  it('A signal that aborts before or during the wait ends it with its reason', async () => {
    const reason = new Error('changed my mind');
    const controller = new AbortController();
    await using _ = await service.acquire('a', '10s');
    const options = { ttl: '10s', signal: controller.signal } as const;
    const waiting = [service.acquire('a', options), service.withLock('a', options, () => 'ran')];
    await settle();
    controller.abort(reason);
    for (const call of waiting) await expect(call).rejects.toBe(reason);
    await expect(service.acquire('b', options)).rejects.toBe(reason);
    await expect(service.withLock('b', options, () => 'ran')).rejects.toBe(reason);
  });

  it('A lock may be released by its own work, which then continues without it', async () => {
    const work = deferred();
    const call = service.withLock('a', '10s', async (lock) => {
      await lock.release();
      await work.promise;
      return 'done';
    });
    await settle();
    await (await service.acquire('a', '10s')).release();
    work.resolve();
    await expect(call).resolves.toBe('done');
  });
});

describe('What the servers do not permit', () => {
  /** Words that send an operator to look for lost data and clocks, while a permission is missing. */
  const WRONG_TRACK = /has not confirmed|lost or replaced|identity changed|0 ms more|1 ms more/;

  /** Errors with such words for every master. A single master may still be looked at when another one names the permission. */
  function misleading(messages: readonly string[]): readonly string[] {
    return messages.filter((message) => WRONG_TRACK.test(message) && !message.includes('ACL SETUSER'));
  }

  const masters = shared(() => startMasters(3));
  let locks: LockService;

  beforeEach(async () => {
    const app = await boot({
      imports: [
        RedlockModule.forRoot({
          masters: [...masters().urls],
          masterTimeout: '500ms',
          connectTimeout: '20s',
          drainTimeout: 0,
        }),
      ],
    });
    locks = app.get(LockService);
    await eventually(() => locks.status().masters.every(({ state }) => state === 'voting'), 30_000);
    await eventually(() => logs.some((line) => line.includes('locks are available')), 30_000);
    // Its answers end each wait in the log, too.
    await locks.probe();
    logs.length = 0;
  });
  afterEach(async () => {
    await change('+@all', 'allkeys', 'allchannels');
    await closeAll();
  });

  /** Changes what the user of the application may do, on all masters. */
  async function change(...rules: readonly string[]): Promise<void> {
    await Promise.all(masters().servers.map(({ port }) => command(port, 'ACL', 'SETUSER', 'default', ...rules)));
  }

  /** Uses most of the library once. Returns the messages of what failed. */
  async function useAll(name: string): Promise<string[]> {
    const messages: string[] = [];
    const attempt = async (work: () => Promise<unknown>): Promise<void> => {
      await work().catch((error: unknown) => messages.push(String(error)));
    };
    await attempt(async () => {
      const lock = await locks.acquire(name, { ttl: '2s', wait: 0 });
      await attempt(() => lock.extend());
      await attempt(() => lock.fencingToken());
      await lock.release();
    });
    await attempt(async () =>
      (await locks.acquire(`${name}:shared`, { ttl: '2s', wait: 0, mode: 'shared' })).release(),
    );
    await attempt(async () => (await locks.acquire(`${name}:permit`, { ttl: '2s', wait: 0, permits: 2 })).release());
    return messages;
  }

  const risks = (): string[] => logs.filter((line) => /^(?:warn|error|log) (?:master|no lock|locks)/.test(line));

  describe('A permission that all masters refuse while the application runs', () => {
    it.each(['set', 'hget', 'time', 'evalsha'])(
      'is named by the error, the status, the probe and one line of the log, if no lock can be taken without it: %s',
      async (name) => {
        await change(`-${name}`);
        const messages: string[] = [];
        await eventually(async () => {
          messages.push(...(await useAll(`vital:${name}`)));
          return !locks.status().canVote;
        }, 30_000);
        for (let i = 0; i < 3; i++) messages.push(...(await useAll(`vital:${name}`)));
        const last = messages.at(-1);
        expect(last).toContain(`ACL SETUSER <its user> +${name}`);
        expect(misleading(messages)).toEqual([]);
        for (const status of [await locks.probe(), locks.status()]) {
          expect(status.canVote).toBe(false);
          const reason = expect.stringMatching(new RegExp(`^NOPERM its user lacks the permission \\+${name}\\b`));
          expect(status.masters).toMatchObject([1, 2, 3].map(() => ({ state: 'refused', reason })));
        }
        expect(risks().filter((line) => line.startsWith('error no lock can be taken'))).toHaveLength(1);
        expect(risks().filter((line) => line.includes('does not vote'))).toHaveLength(3);
        expect(risks().filter((line) => !line.includes(`+${name}`))).toEqual([]);

        logs.length = 0;
        await change(`+${name}`);
        await eventually(async () => (await locks.probe()).canVote, 30_000);
        await eventually(async () => (await useAll(`again:${name}`)).length === 0, 30_000);
        expect(locks.status().masters.map(({ state, reason }) => [state, reason])).toEqual(
          Array(3).fill(['voting', undefined]),
        );
        expect(risks().filter((line) => line.startsWith('log locks can be taken again'))).toHaveLength(1);
        expect(risks().filter((line) => line.endsWith('votes again'))).toHaveLength(3);
      },
    );

    it.each([
      ...['get', 'del', 'exists', 'pexpire', 'pttl', 'zadd', 'zrem', 'zcard', 'zscore', 'zrange', 'zremrangebyscore'],
      ...['pexpireat', 'mget', 'publish', 'pubsub|numsub', 'hset', 'hmget', 'info', 'eval'],
    ])(
      'is named by the status, the probe and one line of the log for each master, while locks can be taken: %s',
      async (name) => {
        await change(`-${name.split('|')[0]}`);
        for (let i = 0; i < 3; i++) {
          await useAll(`minor:${name}:${i}`);
          const { canVote, masters: each } = await locks.probe();
          expect(canVote).toBe(true);
          const reason = expect.stringMatching(
            new RegExp(`^NOPERM its user lacks the permission \\+${name.replace('|', '\\|')} `),
          );
          expect(each).toMatchObject([1, 2, 3].map(() => ({ state: 'voting', reason })));
          await (await locks.acquire(`any:${name}:${i}`, { ttl: '2s', wait: 0 })).release();
        }
        expect(risks().filter((line) => line.includes(`+${name}`))).toHaveLength(3);
        expect(risks().filter((line) => line.startsWith('error'))).toEqual([]);
        expect(risks().filter((line) => line.includes('does not vote'))).toEqual([]);

        await change(`+${name.split('|')[0]}`);
        await eventually(async () => (await locks.probe()).masters.every(({ reason }) => reason === undefined), 30_000);
        await useAll(`again:${name}`);
        expect(risks().filter((line) => line.includes('this is over'))).toHaveLength(3);
      },
    );
  });

  describe('A permission', () => {
    it('for the keys of the library is named if the marker of the restart guard cannot be read', async () => {
      await change('resetkeys', '~other:*');
      const messages: string[] = [];
      await eventually(async () => {
        messages.push(...(await useAll('keys')));
        return !locks.status().canVote;
      }, 30_000);
      expect(misleading(messages)).toEqual([]);
      expect(messages.at(-1)).toContain('~lock:*');
    });

    it.each(['time', 'hget', 'hmget', 'eval'])('that is missing at boot is named by its error: %s', async (name) => {
      await closeAll();
      await change(`-${name}`);
      const error = await boot({
        imports: [RedlockModule.forRoot({ masters: [...masters().urls], connectTimeout: '20s' })],
      }).then(
        () => undefined,
        (reason: unknown) => String(reason),
      );
      expect(error).toMatch(new RegExp(`NOPERM .*'${name}'`));
    });
  });
});
