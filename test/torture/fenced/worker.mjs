// One instance of an application that is stopped and killed. Its holders read a row, and write what they have read and one
// more: a late write would undo others. Argument: the task, as JSON.
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { fence } from 'nestjs-redlock/sql';
import { openSession } from './sessions.mjs';

const { dialect, url, masters, items, actors, fenced, levels } = JSON.parse(process.argv[2]);
/** How often a holder is stopped at one of the places where that is worst. */
const STOP = 0.01;
const counts = {};
const count = (what) => (counts[what] = (counts[what] ?? 0) + 1);
const pick = (list) => list[Math.floor(Math.random() * list.length)];

/** As a long garbage collection or a suspended machine does. The parent lets it go on. */
function mayStop() {
  if (Math.random() >= STOP) return;
  writeSync(1, 'stopped\n');
  process.kill(process.pid, 'SIGSTOP');
}

Logger.overrideLogger(false);
class AppModule {}
const options = { masters, ttl: 300, maxTtl: 1_000, wait: 3_000, lazyConnect: true };
Module({ imports: [RedlockModule.forRoot(options)] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule);
const locks = app.get(LockService);

async function section(lock, item, session) {
  const token = await lock.fencingToken();
  const { resources, mode, fence: row } = lock;
  // Also as a holder whose clock stands still, so that the table alone decides.
  const fencedLock = pick([lock, { resources, mode, fence: row, assertHeld() {} }]);
  mayStop();
  await session.begin(pick(levels));
  try {
    if (fenced)
      await fence(fencedLock, (sql, params) => session.query(sql, params), { dialect: pick([dialect, undefined]) });
    const read = () => session.rows(`SELECT count, version FROM stock WHERE item = '${item}'`);
    const [{ count: base, version }] = await read();
    mayStop();
    if (Math.random() < 0.3) await sleep(Math.random() * 20);
    if (Math.random() < 0.3) {
      // Nothing may be committed since the fence.
      const [again] = await read();
      if (String(again.version) !== String(version)) count('committed beside a fenced transaction');
      await session.query('COMMIT');
      return 'read';
    }
    await session.query(`UPDATE stock SET count = ${Number(base) + 1}, version = version + 1 WHERE item = '${item}'`);
    // The row is locked now, so versions are in the order of the commits.
    const [row] = await read();
    await session.query(`INSERT INTO ledger VALUES ('${item}', ${Number(row.version)}, ${token}, ${Number(base)})`);
    mayStop();
    await session.query('COMMIT');
    return 'written';
  } catch (error) {
    await session.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function actor(number) {
  let session;
  for (;;) {
    const item = pick(items);
    try {
      session ??= await openSession(dialect, url, number % 2);
      count(await locks.withLock(item, (lock) => section(lock, item, session)));
    } catch (error) {
      const code = error.code ?? error.message;
      count(code);
      if (code === 'STALE_TOKEN' || /^LOCK_|^QUORUM|^40001$|DEADLOCK/.test(code)) continue;
      // The server has ended the connection, or is about to.
      await session?.close().catch(() => undefined);
      session = undefined;
      await sleep(20);
    }
  }
}

process.on('disconnect', () => process.exit());
for (let number = 0; number < actors; number++) void actor(number);
setInterval(() => process.send?.(counts), 200);
process.send('ready');
