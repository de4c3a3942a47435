import { afterEach, describe, expect, it } from '@jest/globals';
import { type Lock, LockService, RedlockModule } from 'nestjs-redlock';
import { boot, closeAll } from '../e2e/support/applications.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from './support/shared-masters.js';

const TTL = 300;
const OPTIONS = { ttl: TTL, wait: '30s' } as const;

/** For how long each lock could be relied on when its work began. */
const left: number[] = [];

/** Blocks the event loop until no lock that was granted before can be relied on. */
function block(): void {
  const end = performance.now() + 2 * TTL;
  while (performance.now() < end);
}

function begin(lock: Lock): void {
  left.push(lock.remaining());
  block();
}

afterEach(async () => {
  await closeAll();
  left.length = 0;
});

// Protocol 4.10: which answers arrive in one turn is up to the real event loop.
describe('On real masters, no work begins under a lock that ended', () => {
  const masters = sharedMasters(3);

  async function service(): Promise<LockService> {
    const imports = [RedlockModule.forRoot({ masters: [...masters.urls], restartGuard: false })];
    return (await boot({ imports })).get(LockService);
  }

  it('while work of the same turn blocked', async () => {
    const locks = await service();
    await Promise.allSettled(['a', 'b', 'c'].map((name) => locks.withLock(name, OPTIONS, begin)));
    expect(left).toHaveLength(3);
    for (const remaining of left) expect(remaining).toBeGreaterThan(0);
  });

  it('while the process blocked right after a release', async () => {
    const locks = await service();
    const before = await locks.acquire('a', OPTIONS);
    const calls = [1, 2].map(() => locks.withLock('a', OPTIONS, begin));
    await eventually(() => locks.ownLocks(10).waiting.count > 0 || left.length > 0);
    const released = before.release();
    block();
    await released;
    await Promise.allSettled(calls);
    expect(left).toHaveLength(2);
    for (const remaining of left) expect(remaining).toBeGreaterThan(0);
  });
});
