import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { readConfig } from './config.js';

const app = NestFactory.createApplicationContext(AppModule.register(readConfig(process.env)));
// This does not use `enableShutdownHooks`, which ends the process by the signal after the hooks. This process exits by
// itself with status 0 as soon as nothing is left to do. The handler is registered at the start, because a deployment
// may be rolled back early.
process.once('SIGTERM', () => void app.then((started) => started.close()));
await app;
