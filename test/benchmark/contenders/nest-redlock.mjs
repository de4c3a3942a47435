import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { disconnectAll, ioredisClients } from './ioredis-clients.mjs';
import { decorate } from './decorate.mjs';
import { holdWith } from './hold.mjs';

// Node cannot load its ESM build, which imports files without extension.
const { Redlock, RedlockModule } = createRequire(import.meta.url)('@anchan828/nest-redlock');

/** It offers only the decorator. Its default duration is fixed per method, as its authors intend. */
export async function connect(urls, { ttl } = {}) {
  const clients = await ioredisClients(urls);
  class Host {
    run(key, work) {
      return work();
    }
  }
  decorate(
    Host,
    'run',
    Redlock((host, key) => key, ttl),
  );
  class App {}
  Module({ imports: [RedlockModule.register({ clients })], providers: [Host] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const host = app.get(Host);
  const nothing = async () => {};
  return {
    cycle: (key) => host.run(key, nothing),
    hold: holdWith((key, _ttl, work) => host.run(key, work)),
    async close() {
      await app.close();
      disconnectAll(clients);
    },
  };
}
