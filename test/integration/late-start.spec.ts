import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { type Lock, LockService, QuorumUnavailableError, RedlockModule, WithLock } from 'nestjs-redlock';
import { boot, closeAll } from '../e2e/support/applications.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from './support/shared-masters.js';

const TTL = 300;
const OPTIONS = { ttl: TTL, wait: '30s' } as const;

/** Blocks the event loop until no lock that was granted before can be relied on. */
function block(): void {
  const end = performance.now() + 2 * TTL;
  while (performance.now() < end);
}

const noted: { readonly lock: Lock | undefined; readonly left: number }[] = [];

function begin(lock: Lock | undefined): void {
  noted.push({ lock, left: lock?.remaining() ?? -1 });
  block();
}

@Injectable()
class Methods {
  constructor(private readonly locks: LockService) {}

  @WithLock((name: string) => name, OPTIONS)
  async run(name: string): Promise<void> {
    begin(this.locks.current(name));
    await Promise.resolve();
  }
}

async function acquireAnd(locks: LockService, name: string, options: object = {}): Promise<void> {
  const lock = await locks.acquire(name, { ...OPTIONS, ...options });
  begin(lock);
  await lock.release();
}

type Begin = (locks: LockService, methods: Methods, name: string) => Promise<unknown>;

const WAYS: [string, Begin][] = [
  ['withLock', (locks, _, name) => locks.withLock(name, OPTIONS, begin)],
  ['@WithLock', (_, methods, name) => methods.run(name)],
  ['acquire', (locks, _, name) => acquireAnd(locks, name)],
  ['acquire of a shared lock', (locks, _, name) => acquireAnd(locks, name, { mode: 'shared' })],
  ['acquire of a permit', (locks, _, name) => acquireAnd(locks, name, { permits: 2 })],
];

afterEach(async () => {
  await closeAll();
  noted.length = 0;
});

async function application(urls: readonly string[]): Promise<{ locks: LockService; methods: Methods }> {
  const app = await boot({
    imports: [RedlockModule.forRoot({ masters: [...urls], restartGuard: false })],
    providers: [Methods],
  });
  return { locks: app.get(LockService), methods: app.get(Methods) };
}

describe.each([1, 3])('On %i real masters', (count) => {
  const masters = sharedMasters(count);

  it.each(WAYS)('no work by %s begins under a lock that ended while work of the same turn blocked', async (_, work) => {
    const { locks, methods } = await application(masters.urls);
    await Promise.allSettled(['a', 'b', 'c'].map((name) => work(locks, methods, name)));
    expect(noted).toHaveLength(3);
    for (const { left } of noted) expect(left).toBeGreaterThan(0);
  });

  it.each(WAYS)(
    'no work by %s begins under a lock that was passed on by a caller that then blocked',
    async (_, work) => {
      const { locks, methods } = await application(masters.urls);
      const before = await locks.acquire('a', OPTIONS);
      const calls = [work(locks, methods, 'a'), work(locks, methods, 'a')];
      await eventually(() => locks.ownLocks(10).waiting.count > 0 || noted.length > 0);
      const released = before.release();
      block();
      await released;
      await Promise.allSettled(calls);
      expect(noted).toHaveLength(2);
      for (const { left } of noted) expect(left).toBeGreaterThan(0);
    },
  );

  it('a call that does not wait fails, nothing runs, and nothing is left on the masters', async () => {
    const { locks } = await application(masters.urls);
    const options = { ttl: TTL, wait: 0 };
    const [first, second] = await Promise.allSettled(['a', 'b'].map((name) => locks.withLock(name, options, begin)));
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_LOST' } });
    expect(second).toMatchObject({ status: 'rejected', reason: expect.any(QuorumUnavailableError) });
    expect(noted).toHaveLength(1);
    for (const name of ['a', 'b']) await eventually(async () => (await locks.inspect(name)).state === 'free');
  });
});
