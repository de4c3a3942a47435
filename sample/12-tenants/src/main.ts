import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const locks = { masters: (process.env.REDLOCK_MASTERS ?? '').split(','), ttl: '2s' } as const;
const app = await NestFactory.create(AppModule.register(locks));
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
