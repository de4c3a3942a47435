import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LockService, RedlockModule } from '../../../dist/esm/index.js';

export async function connect(urls) {
  const app = await NestFactory.createApplicationContext(RedlockModule.forRoot(urls), { logger: false });
  const locks = app.get(LockService);
  return {
    async acquire(key, ttl) {
      const lock = await locks.acquire(key, ttl, { wait: '5m' });
      return () => lock.release();
    },
    async tryAcquire(key, ttl) {
      const lock = await locks.tryAcquire(key, ttl);
      return lock && (() => lock.release());
    },
    close: () => app.close(),
  };
}
