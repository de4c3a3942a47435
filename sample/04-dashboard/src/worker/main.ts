// One instance of an application that has several: started by the dashboard, which reads what it tells.
import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Setup } from './setup.js';
import { WorkerModule } from './worker.module.js';

const setup = JSON.parse(process.argv[2] ?? '') as Setup;
Logger.overrideLogger(['error', 'fatal']);
const app = await NestFactory.createApplicationContext(WorkerModule.register(setup));
app.enableShutdownHooks();
