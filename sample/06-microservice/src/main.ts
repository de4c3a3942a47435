import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { AppModule } from './app.module.js';

// A short `maxTtl`, because masters that were just started do not vote until the longest possible lock has expired.
const locks = { masters: (process.env.LOCK_MASTERS ?? '').split(','), ttl: '5s', maxTtl: '5s' } as const;
const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule.register(locks), {
  transport: Transport.TCP,
  options: { host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
});
app.enableShutdownHooks();
await app.listen();
