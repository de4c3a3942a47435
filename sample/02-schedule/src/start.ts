import 'reflect-metadata';
import { type INestApplication, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import type { Config } from './config.js';

/** Starts one instance. When it receives a signal to end, it hands running jobs on and releases its locks. */
export async function start(config: Config): Promise<INestApplication> {
  const app = await NestFactory.create(AppModule.register(config));
  app.enableShutdownHooks();
  await app.listen(config.port, '127.0.0.1');
  new Logger('Instance').log(`${config.instance} listens on ${await app.getUrl()}`);
  return app;
}
