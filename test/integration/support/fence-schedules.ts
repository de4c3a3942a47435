import type { FenceDialect } from '../../../lib/sql/index.js';
import { type Arena, lockWith, outcomeOf, type Session } from './fenced-databases.js';

/** Tokens of an earlier and a later holder, and of one before both. */
const [T0, T1, T2] = [7, 41, 57];
const [PASSED, STALE, MISUSE, SERIALIZATION] = ['passed', 'STALE_TOKEN', 'LOCK_CONFIG', '40001'];

/** What two transactions do, and what has to come of it. */
export interface Schedule {
  readonly title: string;
  readonly run: (arena: Arena, level: string) => Promise<object>;
  readonly expected: (dialect: FenceDialect, level: string) => object;
  readonly dialects?: readonly FenceDialect[];
}

const isStrict = (level: string): boolean => level === 'REPEATABLE READ' || level === 'SERIALIZABLE';

/** Ends a transaction as a caller does that lets an error through, and as one that swallows it. */
async function swallow({ one, database }: Arena, count: number): Promise<void> {
  // Only PostgreSQL makes sure that nothing is committed after a refusal.
  if (database.dialect === 'postgres') {
    await one.set(count).catch(() => undefined);
    await one.commit();
  } else await one.rollback();
}

/** The later holder does its section in the other session. */
async function writeOf(session: Session, level: string, token: number): Promise<void> {
  await session.begin(level);
  await session.fence(token);
  await session.set((await session.count()) - 1);
}

/** What came of a fence that has to wait for the other transaction, until that ends. */
async function outcomeBehind(arena: Arena, fence: Promise<void>, end: () => Promise<void>): Promise<string> {
  const outcome = outcomeOf(fence);
  await arena.untilWaiting();
  await end();
  return outcome;
}

/** Goes on with the transaction of T1 after its fence. */
async function goOn(arena: Arena, fence: string): Promise<object> {
  if (fence === PASSED) await arena.one.set(1).then(() => arena.one.commit());
  else await swallow(arena, 1);
  return { fence, count: await arena.watch.count() };
}

/** What T2 sees after its fence of what T1 wrote. */
const seenBy = async ({ two }: Arena, fence: string): Promise<object> => ({
  ...{ fence, sees: fence === PASSED ? await two.count() : undefined },
});

const seesUnlessStrict: Schedule['expected'] = (dialect, level) =>
  dialect === 'postgres' && isStrict(level) ? { fence: SERIALIZATION, sees: undefined } : { fence: PASSED, sees: 9 };

export const SCHEDULES: readonly Schedule[] = [
  {
    title: 'T2 fences while the transaction of T1 is open: it waits, and then sees what T1 wrote',
    run: async (arena, level) => {
      const { one, two } = arena;
      await writeOf(one, level, T1);
      await two.begin(level);
      return seenBy(arena, await outcomeBehind(arena, two.fence(T2), () => one.commit()));
    },
    expected: seesUnlessStrict,
  },
  {
    title: 'T1 fences while the transaction of T2 is open, which commits: T1 does not commit',
    run: async (arena, level) => {
      const { one, two } = arena;
      await writeOf(two, level, T2);
      await one.begin(level);
      return goOn(arena, await outcomeBehind(arena, one.fence(T1), () => two.commit()));
    },
    expected: (dialect, level) => ({
      fence: dialect === 'postgres' && isStrict(level) ? SERIALIZATION : STALE,
      count: 9,
    }),
  },
  {
    title: 'T1 fences while the transaction of T2 is open, which rolls back: T1 passes',
    run: async (arena, level) => {
      const { one, two, watch } = arena;
      await writeOf(two, level, T2);
      await one.begin(level);
      const fence = await outcomeBehind(arena, one.fence(T1), () => two.rollback());
      await one.set(8);
      await one.commit();
      return { fence, count: await watch.count() };
    },
    expected: () => ({ fence: PASSED, count: 8 }),
  },
  {
    title: 'T2 reads before its fence, and T1 fences, writes and commits in between: only a strict level notices',
    run: async (arena, level) => {
      const { one, two, watch } = arena;
      await two.begin(level);
      const old = await two.count();
      await one.begin(level);
      await one.fence(T1);
      const write = outcomeOf(one.set(9).then(() => one.commit()));
      // In MariaDB's SERIALIZABLE a read locks the row, and one of the two ends by a deadlock.
      if (level === 'SERIALIZABLE' && arena.database.dialect === 'mysql') await arena.untilWaiting();
      else await write;
      const fence = await outcomeOf(two.fence(T2));
      if (fence === PASSED) await two.set(old - 1).then(() => two.commit());
      else await two.rollback();
      return { fence, write: await write, count: await watch.count() };
    },
    expected: (dialect, level) => {
      if (dialect === 'postgres' && isStrict(level)) return { fence: SERIALIZATION, write: PASSED, count: 9 };
      if (level === 'REPEATABLE READ') return { fence: MISUSE, write: PASSED, count: 9 };
      if (level === 'SERIALIZABLE') return { fence: 'ER_LOCK_DEADLOCK', write: PASSED, count: 9 };
      // T1 sold one, T2 sold one, and one of the sales is lost: hence the fence comes first.
      return { fence: PASSED, write: PASSED, count: 9 };
    },
  },
  {
    title: 'T1 fences after T2 has committed: it never commits',
    run: async (arena, level) => {
      const { one, two } = arena;
      await writeOf(two, level, T2);
      await two.commit();
      await one.begin(level);
      return goOn(arena, await outcomeOf(one.fence(T1)));
    },
    expected: () => ({ fence: STALE, count: 9 }),
  },
  {
    title: 'a holder fences each of its transactions, and more than once',
    run: async ({ one, watch }, level) => {
      for (let i = 0; i < 2; i++) {
        await writeOf(one, level, T1);
        await one.fence(T1);
        await one.commit();
      }
      return { count: await watch.count() };
    },
    expected: () => ({ count: 8 }),
  },
  {
    title: 'a refused fence leaves no lock on the row behind, even before its transaction ends',
    run: async ({ one, two }, level) => {
      await writeOf(two, level, T2);
      await two.commit();
      await one.begin(level);
      await outcomeOf(one.fence(T1));
      await two.send(`SET lock_timeout = 1000`);
      await two.begin(level);
      const fence = await outcomeOf(two.fence(T2));
      await two.commit();
      return { fence };
    },
    expected: () => ({ fence: PASSED }),
    dialects: ['postgres'],
  },
  {
    title: 'a fence in autocommit is refused',
    run: async ({ one }) => ({ fence: await outcomeOf(one.fence(T1)) }),
    expected: () => ({ fence: MISUSE }),
  },
  {
    title: 'a fence inside a savepoint is refused, because it does not outlive ROLLBACK TO',
    run: async (arena, level) => {
      const { one, watch } = arena;
      await one.begin(level);
      await one.send('SAVEPOINT nested');
      const fence = await outcomeOf(one.fence(T1));
      await swallow(arena, 1);
      return { fence, count: await watch.count() };
    },
    expected: () => ({ fence: MISUSE, count: 10 }),
    dialects: ['postgres'],
  },
  {
    title: 'a fence inside a savepoint passes where the caller allows it',
    run: async ({ one, watch }, level) => {
      await one.begin(level);
      await one.send('SAVEPOINT nested');
      const fence = await outcomeOf(one.fence(T1, { allowSavepoint: true }));
      await one.set(5);
      await one.commit();
      return { fence, count: await watch.count() };
    },
    expected: () => ({ fence: PASSED, count: 5 }),
    dialects: ['postgres'],
  },
  {
    title: 'a fence inside a savepoint passes for a token that the transaction has fenced before, and for no other',
    run: async ({ one, watch }, level) => {
      await one.begin(level);
      await one.fence(T1);
      await one.send('SAVEPOINT nested');
      const same = await outcomeOf(one.fence(T1));
      await one.send('ROLLBACK TO nested');
      await one.set(5);
      await one.commit();
      await one.begin(level);
      await one.fence(T1);
      await one.send('SAVEPOINT nested');
      const later = await outcomeOf(one.fence(T2));
      return { same, later, count: await watch.count() };
    },
    expected: () => ({ same: PASSED, later: MISUSE, count: 5 }),
    dialects: ['postgres'],
  },
  {
    title: 'a stale fence that nothing awaits lets nothing be committed',
    run: async (arena, level) => {
      const { one, two, watch } = arena;
      await writeOf(two, level, T2);
      await two.commit();
      await one.begin(level);
      const fence = outcomeOf(one.fence(T1, { dialect: 'postgres' }));
      await Promise.all([outcomeOf(one.set(1)), one.commit()]);
      return { fence: await fence, count: await watch.count() };
    },
    expected: () => ({ fence: STALE, count: 9 }),
    dialects: ['postgres'],
  },
  {
    title: 'several resources are refused if one of them is stale',
    run: async (arena, level) => {
      const { one, two, watch } = arena;
      await two.begin(level);
      await two.fenceFor(lockWith(T2, ['lock:b']));
      await two.commit();
      await one.begin(level);
      const fence = await outcomeOf(one.fenceFor(lockWith(T1, ['lock:a', 'lock:b'])));
      await swallow(arena, 1);
      return { fence, count: await watch.count() };
    },
    expected: () => ({ fence: STALE, count: 10 }),
  },
  ...[
    { what: 'two resources of one lock', locks: () => [lockWith(T2, ['lock:a', 'lock:b'])] },
    { what: 'two locks in one call', locks: () => [lockWith(T2, ['lock:b']), lockWith(T2 + 1, ['lock:a'])] },
  ].map(({ what, locks }): Schedule => ({
    title: `T2 fences ${what} while the transaction of T1 has the second: it waits, and then sees what T1 wrote`,
    run: async (arena, level) => {
      const { one, two } = arena;
      await one.begin(level);
      await one.fenceFor(lockWith(T1, ['lock:b']));
      await one.set(9);
      await two.begin(level);
      return seenBy(arena, await outcomeBehind(arena, two.fenceFor(locks()), () => one.commit()));
    },
    expected: seesUnlessStrict,
  })),
  {
    title:
      'T2 fences a second lock by a second call, and T1 has committed under it since the first: never with old data',
    run: async (arena, level) => {
      const { one, two } = arena;
      await two.begin(level);
      await two.fenceFor(lockWith(T2, ['lock:a']));
      await one.begin(level);
      await one.fenceFor(lockWith(T1, ['lock:b']));
      await one.set(9);
      await one.commit();
      return seenBy(arena, await outcomeOf(two.fenceFor(lockWith(T2, ['lock:b']))));
    },
    expected: (dialect, level) => {
      if (dialect === 'postgres' && isStrict(level)) return { fence: SERIALIZATION, sees: undefined };
      return dialect === 'mysql' && level === 'REPEATABLE READ'
        ? { fence: MISUSE, sees: undefined }
        : { fence: PASSED, sees: 9 };
    },
  },
  {
    title: 'a second call for a second lock passes if nothing has been committed under it since the first',
    run: async ({ two }, level) => {
      await two.begin(level);
      await two.fenceFor(lockWith(T2, ['lock:a']));
      return { fence: await outcomeOf(two.fenceFor(lockWith(T2, ['lock:b']))) };
    },
    expected: () => ({ fence: PASSED }),
  },
];

export { T0 };
