import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { readConfig } from './config.js';

const app = await NestFactory.createApplicationContext(AppModule.register(readConfig(process.env)));
// The leader leaves first, and another one leads before this process has ended.
process.once('SIGTERM', () => void app.close());
