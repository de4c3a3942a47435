import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { mastersOf } from './config.js';

const locks = { masters: mastersOf(process.env), ttl: '2s' } as const;
const app = await NestFactory.create(AppModule.register(locks));
// The shutdown hooks release held locks when the process receives a signal to end.
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
