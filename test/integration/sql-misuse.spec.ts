import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createConnection, createPool } from 'mysql2/promise';
import pg from 'pg';
import { LockLostError } from '../../lib/redlock/errors.js';
import { fence } from '../../lib/sql/index.js';
import { LONGEST_NAME } from '../../lib/sql/dialects.js';
import { Arena, fencedDatabases, lockWith, outcomeOf } from './support/fenced-databases.js';
import { shared } from '../support/shared.js';

const NAMES = ['lock:stock', 'a:b:\0key:c', 'back\\slash', 'line\nfeed', 'ключ 🔑', `x${'é'.repeat(500)}`];

describe.each(fencedDatabases().map((database) => [database.name, database] as const))('On %s', (_name, database) => {
  const { dialect } = database;
  const isPostgres = dialect === 'postgres';
  const arena = shared(() => Arena.open(database));
  beforeEach(() => arena().reset());

  it('a fence by a pool instead of its transaction is refused, and says so', async () => {
    const pool: { query(sql: string, params: string[]): Promise<unknown>; end(): Promise<void> } = isPostgres
      ? new pg.Pool({ connectionString: arena().url })
      : createPool(arena().url);
    try {
      const query = (sql: string, params: string[]): unknown => pool.query(sql, params);
      await expect(fence(lockWith(41), query)).rejects.toThrow(
        'fence of "stock" ran outside a transaction: pass the query function of the transaction, not of the pool',
      );
    } finally {
      await pool.end();
    }
  });

  it('a stale token is refused with both numbers', async () => {
    await arena().reset(57);
    await arena().one.begin();
    await expect(arena().one.fence(41)).rejects.toMatchObject({
      message: 'fence of "stock" refused: 41, the table has 57, a later holder was here; roll back',
      code: 'STALE_TOKEN',
      resources: ['stock'],
      token: 41,
      stored: 57,
    });
  });

  it('tokens of any size are distinguished', async () => {
    await arena().reset(Number.MAX_SAFE_INTEGER - 1);
    await arena().one.begin();
    await expect(outcomeOf(arena().one.fence(Number.MAX_SAFE_INTEGER - 2))).resolves.toBe('STALE_TOKEN');
    await arena().one.rollback();
    await arena().one.begin();
    await expect(outcomeOf(arena().one.fence(Number.MAX_SAFE_INTEGER))).resolves.toBe('passed');
  });

  it('names of every kind, and of the greatest length, have rows of their own', async () => {
    const names = [...NAMES, 'n'.repeat(LONGEST_NAME)];
    for (const [index, name] of names.entries()) {
      await arena().one.begin();
      await arena().one.fenceFor(lockWith(10 + index, [name]));
      await arena().one.commit();
    }
    for (const [index, name] of names.entries()) {
      await arena().one.begin();
      await expect(outcomeOf(arena().one.fenceFor(lockWith(9 + index, [name])))).resolves.toBe('STALE_TOKEN');
      await arena().one.rollback();
    }
  });

  it('the dialect is seen, and need not be asked for if it is given', async () => {
    const sent: string[] = [];
    const counted = async (options?: object): Promise<number> => {
      sent.length = 0;
      await arena().one.begin();
      await fence(
        lockWith(41),
        (sql, params) => {
          sent.push(sql);
          return arena().one.send(sql, params);
        },
        options,
      );
      await arena().one.commit();
      return sent.length;
    };
    const seen = await counted();
    expect(sent[0]).toBe('SELECT version() AS version');
    await expect(counted({ dialect })).resolves.toBe(seen - 1);
    expect(seen).toBe(isPostgres ? 3 : 7);
  });

  it('a missing table is named', async () => {
    await arena().watch.send('ALTER TABLE redlock_fence RENAME TO hidden');
    try {
      await arena().one.begin();
      await expect(arena().one.fence(41)).rejects.toMatchObject({
        message: 'fence of "stock" found no table redlock_fence: run `fenceMigration` in a migration',
        cause: expect.any(Error),
      });
    } finally {
      await arena().one.rollback();
      await arena().watch.send('ALTER TABLE hidden RENAME TO redlock_fence');
    }
  });

  if (isPostgres) describePostgres(arena);
  else {
    it('the character set of a connection neither splits nor merges names', async () => {
      const latin = await createConnection({ uri: arena().url, charset: 'LATIN1_SWEDISH_CI' });
      const fenceOf = async (token: number, name: string): Promise<string> => {
        await latin.beginTransaction();
        return outcomeOf(fence(lockWith(token, [name]), (sql, params) => latin.query(sql, params)));
      };
      try {
        await arena().one.begin();
        await arena().one.fenceFor(lockWith(57, ['café', 'ключ']));
        await arena().one.commit();
        await expect(fenceOf(41, 'café')).resolves.toBe('STALE_TOKEN');
        await expect(fenceOf(41, 'слон')).resolves.toBe('passed');
      } finally {
        await latin.end();
      }
    });

    it('autocommit is seen by a server of any language', async () => {
      await arena().one.send(`SET lc_messages = 'de_DE'`);
      await expect(arena().one.fence(41)).rejects.toThrow(/ran outside a transaction/);
      await arena().one.send(`SET lc_messages = 'en_US'`);
    });

    it('a read before the fence is named', async () => {
      await arena().one.begin('REPEATABLE READ');
      await arena().one.count();
      await arena().two.begin('REPEATABLE READ');
      await arena().two.fence(41);
      await arena().two.commit();
      await expect(arena().one.fence(57)).rejects.toThrow(
        'fence of "stock" came too late: this transaction read before the fence; ' +
          'fence all its locks in one call, as its first statement',
      );
    });
  }
});

function describePostgres(arena: () => Arena): void {
  it('a transaction that is refused cannot commit, also where the refusal is swallowed', async () => {
    const { one, watch } = arena();
    for (const misuse of ['stale', 'lost', 'savepoint', 'rows'] as const) {
      await arena().reset(57);
      await one.begin();
      if (misuse === 'stale') await outcomeOf(one.fence(41));
      if (misuse === 'lost') {
        const assertHeld = (): never => {
          throw new LockLostError(['stock'], 'expired');
        };
        await expect(outcomeOf(one.fenceFor(Object.assign(lockWith(58), { assertHeld })))).resolves.toBe('LOCK_LOST');
      }
      if (misuse === 'rows')
        await outcomeOf(fence(lockWith(58), (sql) => one.send(sql.includes('redlock_fence') ? 'SELECT 1' : sql)));
      if (misuse === 'savepoint') {
        await one.send('SAVEPOINT nested');
        await expect(one.fence(58)).rejects.toThrow(
          'fence of "stock" ran inside a savepoint: fence before the first nested transaction, or pass `allowSavepoint: true`',
        );
      }
      await outcomeOf(one.set(1));
      await one.commit();
      await expect(watch.count()).resolves.toBe(10);
    }
  });

  it('a holder that is paused inside its transaction is ended by the timeout for idle transactions', async () => {
    const { one, two } = arena();
    await one.send(`SET idle_in_transaction_session_timeout = '200ms'`);
    await one.begin();
    await one.fence(41);
    await two.begin();
    await expect(outcomeOf(two.fence(57))).resolves.toBe('passed');
    await two.commit();
    await expect(one.set(1)).rejects.toThrow();
    await arena().renewOne();
  });

  it('the setting does not grow with fences that the transaction has already, and no answer has it', async () => {
    const { one } = arena();
    const answers: unknown[] = [];
    const lengthAfter = async (fences: number): Promise<number> => {
      for (let i = 0; i < fences; i++) {
        await fence(lockWith(41), async (sql, params) => answers.push(await one.send(sql, params)) && answers.at(-1));
      }
      const { rows } = (await one.send(`SELECT length(current_setting('redlock.fence'))`)) as { rows: object[] };
      return Number(Object.values(rows[0]!)[0]);
    };
    await one.begin();
    const length = await lengthAfter(1);
    await expect(lengthAfter(3)).resolves.toBe(length);
    expect(JSON.stringify(answers)).not.toContain('lock:stock');
  });

  describe('the trigger', () => {
    const guard = (argument = ''): Promise<unknown> =>
      arena().watch.send(
        `CREATE TRIGGER redlock_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON stock ` +
          `FOR EACH STATEMENT EXECUTE FUNCTION redlock_require_fence(${argument})`,
      );
    const unfenced = /redlock: UPDATE of "stock" without a fence in this transaction/;

    afterEach(async () => {
      await arena().one.rollback();
      await arena().two.rollback();
      await arena().one.send('RESET redlock.fence');
      await arena().watch.send('DROP TRIGGER IF EXISTS redlock_fence ON stock');
    });

    it('accepts writes after the fence of their transaction', async () => {
      const { one, watch } = arena();
      await guard();
      await one.begin();
      await one.fence(41);
      await one.set(9);
      await one.send('SAVEPOINT nested');
      await one.set(8);
      await one.send('ROLLBACK TO nested');
      await one.set(7);
      await one.commit();
      await expect(watch.count()).resolves.toBe(7);
    });

    const itRefusesAWrite = (where: string, before: (arena: Arena) => Promise<unknown>): void =>
      it(`refuses a write ${where}`, async () => {
        await guard();
        await before(arena());
        await expect(arena().one.set(1)).rejects.toThrow(unfenced);
      });

    itRefusesAWrite('outside a transaction', () => Promise.resolve());

    itRefusesAWrite('in a transaction without a fence', ({ one }) => one.begin());

    itRefusesAWrite('on another connection than the fence', async ({ one, two }) => {
      await two.begin();
      await two.fence(41);
      await one.begin();
    });

    itRefusesAWrite('in the next transaction of the connection', async ({ one }) => {
      await one.begin();
      await one.fence(41);
      await one.commit();
      await one.begin();
    });

    itRefusesAWrite('after a savepoint with the fence was rolled back', async ({ one }) => {
      await one.begin();
      await one.send('SAVEPOINT nested');
      await one.fence(41, { allowSavepoint: true });
      await one.send('ROLLBACK TO nested');
    });

    itRefusesAWrite('after a stale fence was swallowed by a savepoint', async ({ one, two }) => {
      await two.begin();
      await two.fence(57);
      await two.commit();
      await one.begin();
      await one.send('SAVEPOINT nested');
      await expect(outcomeOf(one.fence(41))).resolves.toBe('STALE_TOKEN');
      await one.send('ROLLBACK TO nested');
    });

    itRefusesAWrite('where another transaction has left the setting', async ({ one }) => {
      await one.send(`SET redlock.fence = '42'`);
      await one.begin();
    });

    it('with an argument, accepts only the fence of a resource that begins so', async () => {
      const { one, watch } = arena();
      await guard(`'stock:'`);
      await one.begin();
      await one.fenceFor(lockWith(41, ['lock:order:1']));
      await expect(one.set(1)).rejects.toThrow(unfenced);
      await one.rollback();
      await one.begin();
      await one.fenceFor(lockWith(41, ['lock:stock:teapot', 'lock:user:1']));
      await one.set(9);
      await one.commit();
      await expect(watch.count()).resolves.toBe(9);
    });

    it('with an argument, accepts the fence of a permit, and of a lock with a prefix of several words', async () => {
      const { one, watch } = arena();
      await guard(`'stock:'`);
      for (const [index, key] of ['lock:\0permit:0:stock:teapot', 'shop:prod:\0key:stock:teapot'].entries()) {
        await one.begin();
        await one.fenceFor(Object.assign(lockWith(41, [key]), { resources: ['stock:teapot'] }));
        await one.set(index);
        await one.commit();
        await expect(watch.count()).resolves.toBe(index);
      }
    });
  });
}
