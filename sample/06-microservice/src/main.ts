import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { AppModule } from './app.module.js';

const locks = { masters: (process.env.REDLOCK_MASTERS ?? '').split(','), ttl: '2s' } as const;
const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule.register(locks), {
  transport: Transport.TCP,
  options: { host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) },
});
app.enableShutdownHooks();
await app.listen();
