import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const { REDLOCK_MASTERS = '', QUEUE_URL = '' } = process.env;
const locks = { masters: REDLOCK_MASTERS.split(','), ttl: '2s' } as const;
const app = await NestFactory.createApplicationContext(AppModule.register(QUEUE_URL, locks));
app.enableShutdownHooks();
