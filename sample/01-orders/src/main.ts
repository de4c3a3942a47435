import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const { REDIS_URLS = 'memory', PORT = '3000' } = process.env;
const masters = REDIS_URLS === 'memory' ? REDIS_URLS : REDIS_URLS.split(',');
const app = await NestFactory.create(AppModule.register({ masters, ttl: '2s' }));
app.enableShutdownHooks();
await app.listen(PORT);
