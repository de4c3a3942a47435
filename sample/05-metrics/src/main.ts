import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { mastersOf } from './config.js';

const locks = { masters: mastersOf(process.env), ttl: '5s' } as const;
const app = await NestFactory.create(AppModule.register(locks));
// Locks that are still held are released when the process is told to end.
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
