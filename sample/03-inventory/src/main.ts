import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { readConfig } from './config.js';

const config = readConfig(process.env);
const app = await NestFactory.create(AppModule.register(config));
app.enableShutdownHooks();
await app.listen(config.port, '127.0.0.1');
process.stdout.write(`listening on ${await app.getUrl()}\n`);
