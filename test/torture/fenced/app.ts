// One instance of an application that is stopped and killed. Its holders read a row, and write what they have read and one
// more: a late write would undo others.
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Lock, LockService, RedlockModule } from 'nestjs-redlock';
import { fence } from 'nestjs-redlock/sql';
import { note } from '../boot.js';
import { type FencedTask, ITEMS, openSession, type Session } from './sessions.js';

const { dialect, url, masters, ttl, fenced, levels } = JSON.parse(process.argv[2] ?? '') as FencedTask;
const ACTORS = 3;
/** How often a holder is stopped at one of the places where that is worst. */
const STOP = 0.01;
const count = (what: string): void => note({ kind: 'counted', what });
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T;

/** As a long garbage collection or a suspended machine does. The parent lets it go on. */
async function mayStop(): Promise<void> {
  if (Math.random() >= STOP) return;
  count('stopped');
  await new Promise((resolve) => process.send?.({ stopped: true }, resolve));
  process.kill(process.pid, 'SIGSTOP');
}

@Module({ imports: [RedlockModule.forRoot({ masters, ttl, maxTtl: 1_000, wait: 3_000, lazyConnect: true })] })
class AppModule {}
Logger.overrideLogger(false);
const app = await NestFactory.createApplicationContext(AppModule);
const locks = app.get(LockService);

async function section(lock: Lock, item: string, session: Session): Promise<string> {
  const token = await lock.fencingToken();
  const { resources, mode, fence: row } = lock;
  // Also as a holder whose clock stands still, so that the table alone decides.
  const fencedLock = pick([lock, { resources, mode, fence: row, assertHeld: (): void => undefined }]);
  await mayStop();
  await session.begin(pick(levels));
  try {
    if (fenced) {
      const option = pick([{ dialect }, {}]);
      await fence(fencedLock as Lock, (sql, params) => session.query(sql, params), option);
    }
    const read = async () => (await session.rows(`SELECT count, version FROM stock WHERE item = '${item}'`))[0]!;
    const { count: base, version } = await read();
    await mayStop();
    if (Math.random() < 0.3) await sleep(Math.random() * 20);
    if (Math.random() < 0.3) {
      // Nothing may be committed since the fence.
      const again = await read();
      if (String(again['version']) !== String(version)) count('committed beside a fenced transaction');
      await session.query('COMMIT');
      return 'read';
    }
    await session.query(`UPDATE stock SET count = ${Number(base) + 1}, version = version + 1 WHERE item = '${item}'`);
    // The row is locked now, so versions are in the order of the commits.
    const row = await read();
    await session.query(`INSERT INTO ledger VALUES ('${item}', ${Number(row['version'])}, ${token}, ${Number(base)})`);
    await mayStop();
    await session.query('COMMIT');
    return 'written';
  } catch (error) {
    await session.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function actor(number: number): Promise<never> {
  let session: Session | undefined;
  for (;;) {
    const item = pick(ITEMS);
    try {
      const own = (session ??= await openSession(dialect, url, number % 2));
      count(await locks.withLock(item, (lock) => section(lock, item, own)));
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      count(code ?? message);
      if (code === 'STALE_TOKEN' || /^LOCK_|^QUORUM|^40001$|DEADLOCK/.test(code ?? message)) continue;
      // The server has ended the connection, or is about to.
      await session?.close().catch(() => undefined);
      session = undefined;
      await sleep(20);
    }
  }
}

for (let number = 0; number < ACTORS; number++) void actor(number);
process.send?.({ ready: true });
