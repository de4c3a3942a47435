import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { readConfig } from './config.js';

const app = NestFactory.createApplicationContext(AppModule.register(readConfig(process.env)));
// Not `enableShutdownHooks`, which ends the process by the signal when the hooks are done: this one ends by itself, with
// status 0, as soon as nothing is left to do. A handler from the start, because a deployment may be taken back early.
process.once('SIGTERM', () => void app.then((started) => started.close()));
await app;
