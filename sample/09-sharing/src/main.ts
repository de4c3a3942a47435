import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { PriceStore } from './price.store.js';

const { REDLOCK_MASTERS = '', PORT = '3000', STORE = 'build/prices' } = process.env;
const locks = { masters: REDLOCK_MASTERS.split(','), ttl: '2s' } as const;
const app = await NestFactory.create(AppModule.register(locks, new PriceStore(STORE)));
app.enableShutdownHooks();
await app.listen(PORT);
