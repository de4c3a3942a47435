import type { MemoryMaster } from 'nestjs-redlock/testing';
import { LockService } from 'nestjs-redlock';
import { type Running, ship } from './application.js';

/** Makes everything happen that the metrics count: grants, waiting, skips, a lost quorum, locks in danger and lost. */
export async function causeEverything({ app, url }: Running, masters: readonly MemoryMaster[]): Promise<void> {
  const locks = app.get(LockService);
  await Promise.all([ship(url, '1'), ship(url, '1')]);
  const waits = ['a', 'b'].map((who) => locks.withLock('order:2', '1s', () => ship(url, who)));
  await Promise.all(waits);
  const held = await locks.acquire('order:3', { ttl: '1s', extend: true });
  const isLost = new Promise((resolve) => held.signal.addEventListener('abort', resolve));
  for (const master of masters.slice(1)) master.pause();
  // A master is silent once it leaves several requests unanswered.
  await Promise.allSettled(['4', '5', '6'].map((order) => locks.acquire(`order:${order}`, { wait: 0 })));
  await isLost;
  for (const master of masters) master.resume();
  // Any answer shows that the masters are back.
  await locks.probe();
}
