import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { mastersOf } from './config.js';

const app = await NestFactory.create(AppModule.register({ masters: mastersOf(process.env) }));
// Locks that are still held are released when the process is told to end.
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
