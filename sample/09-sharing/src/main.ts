import 'reflect-metadata';
import { once } from 'node:events';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Carrier } from './carrier.js';
import { CALLS_AT_A_TIME } from './labels.controller.js';
import { PriceStore } from './price.store.js';
import { standIn } from './stand-in.js';

const {
  REDLOCK_MASTERS = '',
  LOCKS,
  PORT = '3000',
  CARRIER = 'http://127.0.0.1:3999',
  STORE = 'build/prices',
} = process.env;
const { hostname, port } = new URL(CARRIER);
if (process.argv[2] === 'carrier') {
  await once(standIn(CALLS_AT_A_TIME).listen(Number(port), hostname), 'listening');
} else {
  const locks = { masters: REDLOCK_MASTERS.split(','), ttl: '2s', enabled: LOCKS !== 'off' } as const;
  const surroundings = { locks, carrier: new Carrier(CARRIER), prices: new PriceStore(STORE) };
  const app = await NestFactory.create(AppModule.register(surroundings));
  app.enableShutdownHooks();
  await app.listen(PORT);
}
