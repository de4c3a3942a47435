// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { UseInterceptors } from '@nestjs/common';
import { type Lock, LockInterceptor, LockService, RedlockModule } from 'nestjs-redlock';
import { memoryLockService, RedlockTestingModule, withLocks } from 'nestjs-redlock/testing';

export async function misuses(locks: LockService): Promise<void> {
  // @ts-expect-error no such unit
  await locks.acquire('a', '5 minutes');
  // @ts-expect-error only work can be reentrant
  await locks.acquire('a', { ttl: '5s', reentrant: true });
  // @ts-expect-error may be null
  (await locks.tryAcquire('a')).assertHeld();
  // @ts-expect-error only decorators and interceptors have onLocked
  await locks.withLock('a', { ttl: '5s', onLocked: 'skip' }, () => 1);
  // @ts-expect-error the result is a number
  const text: string = await locks.withLock('a', '5s', () => 1);
  const lock: Lock = await locks.acquire('a');
  // @ts-expect-error is a question, not a statement
  lock.isHeld = true;
  // @ts-expect-error only the library makes locks
  new LockService();
}

class NoFactory {
  readonly ttl = 1;
}

export const modules = [
  RedlockModule.forRoot(['redis://10.0.0.1:6379'] as const),
  RedlockModule.forRoot({ enabled: false, ttl: '10s', isGlobal: false, name: 'billing' }),
  RedlockModule.forRoot({ enabled: process.env.LOCKS !== 'off', masters: 'memory' }),
  RedlockModule.forRootAsync({
    useFactory: async () => Promise.resolve(['redis://a:6379', { host: 'b', password: () => 'x' }]),
  }),
  RedlockModule.forRootAsync({ useFactory: () => (process.env.LOCKS ? { masters: 'memory' } : { enabled: false }) }),
  RedlockModule.forRootAsync({ useFactory: async () => Promise.resolve({ enabled: false as const }) }),
  // @ts-expect-error whether masters are needed is known only at run time
  RedlockModule.forRoot({ enabled: process.env.LOCKS !== 'off' }),
  // @ts-expect-error no masters
  RedlockModule.forRoot({ enabled: true }),
  // @ts-expect-error no such option
  RedlockModule.forRoot({ enabled: false, retryCount: 3 }),
  // @ts-expect-error no masters
  RedlockModule.forRoot({ ttl: '10s' }),
  // @ts-expect-error no such option
  RedlockModule.forRoot({ masters: 'memory', retryCount: 3 }),
  // @ts-expect-error the factory gives no masters
  RedlockModule.forRootAsync({ useFactory: () => ({ ttl: '10s' as const }) }),
  // @ts-expect-error the class gives no options
  RedlockModule.forRootAsync({ useClass: NoFactory }),
  // @ts-expect-error a test has no servers
  RedlockTestingModule.forRoot({ masters: ['redis://10.0.0.1:6379'] }),
  // @ts-expect-error it is always global
  RedlockTestingModule.forRoot({ isGlobal: false }),
];

export class Boxed<T> {
  constructor(readonly content: T) {}
}

export function wraps(): Boxed<number> {
  // @ts-expect-error a number has no methods to lock
  withLocks(1);
  // @ts-expect-error a module is no lock service
  withLocks(new Boxed(1), RedlockTestingModule.forRoot());
  return withLocks(new Boxed(1), memoryLockService());
}

export class Carts {
  @UseInterceptors(LockInterceptor(async () => Promise.resolve(['a', 'b'] as const)))
  later(): void {}

  // @ts-expect-error a key is a text
  @UseInterceptors(LockInterceptor(() => 42))
  number(): void {}
}
