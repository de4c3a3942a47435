// One of several instances of an application. The dashboard starts it and reads its reports.
import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Setup } from './setup.js';
import { WorkerModule } from './worker.module.js';

const setup = JSON.parse(process.argv[2] ?? '') as Setup;
Logger.overrideLogger(['error', 'fatal']);
const app = await NestFactory.createApplicationContext(WorkerModule.register(setup));
app.enableShutdownHooks();
