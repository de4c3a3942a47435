import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule } from './app.module.js';

const locks = { masters: (process.env.REDLOCK_MASTERS ?? '').split(','), ttl: '2s' } as const;
const app = await NestFactory.create<NestFastifyApplication>(AppModule.register(locks), new FastifyAdapter());
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
