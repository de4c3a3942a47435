import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { type Lock, LockService, type RedlockModuleOptions, RedlockModule } from 'nestjs-redlock';
import { fence, type FenceDialect, fenceMigration, fenceStatement, fenceSync } from 'nestjs-redlock/sql';
import { throwing } from '../../support/throwing.js';

const modules: TestingModule[] = [];

afterEach(async () => {
  await Promise.all(modules.splice(0).map((module) => module.close()));
});

async function locksWith(options: Partial<RedlockModuleOptions> = {}): Promise<LockService> {
  const imports = [RedlockModule.forRoot({ masters: 'memory', drainTimeout: 0, ...options })];
  const module = await Test.createTestingModule({ imports }).compile();
  modules.push(module);
  return module.get(LockService);
}

async function fenced(lock: Lock): Promise<Lock> {
  await lock.fencingToken();
  return lock;
}

/** The names of the rows that a lock fences. */
function namesOf(lock: Lock): string[] {
  return fenceStatement(lock).params.filter((_, index) => index % 2 === 0);
}

const never = throwing(new Error('a statement was sent'));

describe('A fence', () => {
  it('needs a token that was drawn before, so that the transaction waits for no master', async () => {
    const locks = await locksWith();
    const lock = await locks.acquire('stock:teapot');
    await expect(fence(lock, never)).rejects.toThrow(
      'fence of "stock:teapot" has no token: call `await lock.fencingToken()` before the transaction begins, ' +
        'so that an outage of the masters cannot hold it open',
    );
    const token = await lock.fencingToken();
    expect(fenceStatement(lock).params).toEqual(['lock:stock:teapot', String(token)]);
  });

  it('refuses a shared lock, which has no token', async () => {
    const locks = await locksWith();
    const lock = await locks.acquire('stock', { mode: 'shared' });
    await expect(fence(lock, never)).rejects.toThrow(/"stock" has a shared lock, which has no fencing token: take an/);
  });

  it.each([undefined, null, {}, 'stock:teapot'])('refuses %j instead of a lock', async (lock) => {
    await expect(fence(lock as Lock, never)).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'lock' });
  });

  it('refuses what is no query function, unknown options, and unknown databases', async () => {
    const lock = await fenced(await (await locksWith()).acquire('stock'));
    await expect(fence(lock, 'SELECT 1' as never)).rejects.toThrow(/query must be a function that sends a statement/);
    await expect(fence(lock, never, { dialekt: 'mysql' } as never)).rejects.toThrow(/did you mean dialect\?/);
    const oracle = 'oracle' as FenceDialect;
    await expect(fence(lock, never, { dialect: oracle })).rejects.toThrow(/must be 'postgres', 'mysql' or 'sqlite'/);
    expect(() => fenceMigration(oracle)).toThrow(/dialect must be 'postgres', 'mysql' or 'sqlite', got "oracle"/);
  });

  it('has a row for the prefix, the resource and the slot of a permit, which never coincide', async () => {
    const prefixed = await locksWith({ keyPrefix: 'app:jobs:' });
    expect(namesOf(await fenced(await prefixed.acquire('1')))).toEqual(['app:jobs:\\0key:1']);
    const locks = await locksWith({ keyPrefix: 'app:' });
    expect(namesOf(await fenced(await locks.acquire('jobs:1')))).toEqual(['app:jobs:1']);
    const permit = await fenced(await locks.acquire('mail', { permits: 2 }));
    expect(namesOf(permit)).toEqual([`app:\\0permit:${permit.slot}:mail`]);
    expect(namesOf(await fenced(await locks.acquire('a\\0b')))).toEqual(['app:a\\\\0b']);
    expect(namesOf(await fenced(await locks.acquire('a\nb')))).toEqual(['app:a\\nb']);
  });

  it('refuses a name that the databases cannot index', async () => {
    const locks = await locksWith({ keyPrefix: '' });
    await expect(fence(await fenced(await locks.acquire('é'.repeat(513))), never)).rejects.toThrow(
      /has a name of more than 1024 bytes: use a shorter resource/,
    );
  });

  it('takes several resources one after the other, by their code units', async () => {
    const lock = await fenced(await (await locksWith()).acquire(['b', 'a', 'B', 'é']));
    expect(namesOf(lock)).toEqual(['lock:B', 'lock:a', 'lock:b', 'lock:é']);
    const sent: string[] = [];
    const query = (sql: string, params: string[]): object[] => {
      if (!sql.includes('INSERT')) return [{ tx: '9' }];
      sent.push(params[0]!);
      return [{ fenced: params[1], x: '9', tx: '9', top: '9' }];
    };
    await fence(lock, query, { dialect: 'postgres' });
    expect(sent).toEqual(namesOf(lock));
  });

  it.each([
    'CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)',
    'PostgreSQL 11.2-YB-2.21.0.0-b0 on x86_64-pc-linux-gnu',
    '8.0.11-TiDB-v7.5.0',
    'Oracle',
  ])('refuses %s, whose conflicts may be found only at the commit', async (version) => {
    const lock = await fenced(await (await locksWith()).acquire('stock'));
    await expect(fence(lock, () => [{ version }])).rejects.toThrow(
      `fence of "stock" does not know "${version}": use PostgreSQL, MySQL, MariaDB or SQLite`,
    );
  });

  it.each([
    ['rows', (row: object) => [row]],
    ['an object with rows', (row: object) => ({ rows: [row], command: 'SELECT' })],
    ['rows and fields', (row: object) => [[row], [{ name: 'tx' }]]],
  ])('reads %s, as drivers answer', async (_form, answer) => {
    const lock = await fenced(await (await locksWith()).acquire('stock'));
    const query = (_sql: string, params: string[]): unknown => answer({ fenced: params[1], x: '9', tx: '9', top: '9' });
    await expect(fence(lock, query, { dialect: 'postgres' })).resolves.toBeUndefined();
  });

  it.each([
    ['nothing', undefined],
    ['no row', []],
    ['rows as arrays', [['41', '9', '9', '9']]],
    ['another row', [{ count: 1 }]],
    [
      'two rows',
      [
        { tx: '9', top: '9' },
        { tx: '9', top: '9' },
      ],
    ],
    ['a number', { rowCount: 1 }],
  ])('never passes on %s', async (_form, answer) => {
    const lock = await fenced(await (await locksWith()).acquire('stock'));
    for (const dialect of [undefined, 'postgres', 'mysql'] as const) {
      await expect(fence(lock, () => answer, { ...(dialect && { dialect }) })).rejects.toThrow(
        /fence of "stock" got (?:no row|a row of .*, not its own): let the query function return what/,
      );
    }
    expect(() => fenceStatement(lock).check(answer)).toThrow(/got (?:no row|a row of)/);
  });

  it('leaves errors of the database as they are', async () => {
    const lock = await fenced(await (await locksWith()).acquire('stock'));
    const error = Object.assign(new Error('could not serialize access'), { code: '40001' });
    const query = (): Promise<never> => Promise.reject(error);
    for (const dialect of ['postgres', 'mysql', 'sqlite'] as const) {
      await expect(fence(lock, query, { dialect })).rejects.toBe(error);
    }
  });

  it('refuses a lock that is not held before it touches the table, whatever that has', async () => {
    const locks = await locksWith();
    const [lock, other] = [await fenced(await locks.acquire('stock')), await fenced(await locks.acquire('order'))];
    await lock.release();
    const lost = expect.objectContaining({ code: 'LOCK_LOST', resources: ['stock'] });
    for (const dialect of ['postgres', 'mysql', 'sqlite'] as const) {
      const query = (sql: string): unknown => {
        if (sql.includes('redlock_fence')) return never();
        if (sql === 'BEGIN') throw new Error('cannot start a transaction within a transaction');
        return [];
      };
      await expect(fence(lock, query, { dialect })).rejects.toEqual(lost);
    }
    const inside = throwing(new Error('cannot start a transaction within a transaction'));
    expect(() => fenceSync(lock, { exec: inside, prepare: never })).toThrow(/lost the lock on "stock"/);
    expect(() => fenceStatement([other, lock])).toThrow(/lost the lock on "stock"/);
    expect(() => fenceStatement(other)).not.toThrow();
  });

  it('refuses an empty list of locks', async () => {
    await expect(fence([], never)).rejects.toThrow(/lock must be a lock, or a list of one or more/);
  });
});

describe('The recipes of the documentation', () => {
  const root = resolve(import.meta.dirname, '../../..');
  const page = readFileSync(join(root, 'docs/fenced-writes.md'), 'utf8');
  const rows = [...page.matchAll(/^- (`[^`]+`|[\w-]+): `(fence(?:Sync)?\([^`]+\))`/gm)];
  const fileOf = (name: string): string => `${name.toLowerCase().replaceAll('`', '').replace(':', '-')}.mjs`;

  it('are those that are tested', () => expect(rows.length).toBe(8));

  it.each(rows.map(([, name, call]) => [name!, call!]))('for %s are in its program', (name, call) => {
    expect(readFileSync(join(root, 'test/sql/recipes', fileOf(name)), 'utf8')).toContain(call);
  });
});
