import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MurLock, MurLockModule } from 'murlock';
import { decorate } from './decorate.mjs';

/** Supports one server only, and does not extend locks. */
export async function connect([url], { ttl } = {}) {
  class Host {
    async run(key) {
      return key;
    }
  }
  decorate(Host, 'run', MurLock(ttl, 'key'));
  class App {}
  const options = { redisOptions: { url }, wait: 50, maxAttempts: 5, logLevel: 'error', ignoreUnlockFail: false };
  Module({ imports: [MurLockModule.forRoot(options)], providers: [Host] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const host = app.get(Host);
  return { cycle: (key) => host.run(key), close: () => app.close() };
}
