import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const { REDIS_URLS = 'memory', ADMIN_PASSWORD, PORT = '3000' } = process.env;
if (!ADMIN_PASSWORD) throw new Error('ADMIN_PASSWORD is not set: the dashboard is for those who know it');
const masters = REDIS_URLS === 'memory' ? REDIS_URLS : REDIS_URLS.split(',');
const app = await NestFactory.create(AppModule.register({ masters, ttl: '5s' }, ADMIN_PASSWORD));
app.enableShutdownHooks();
await app.listen(PORT);
new Logger('Dashboard').log(`sign in at ${await app.getUrl()}/login`);
