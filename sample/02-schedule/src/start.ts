import 'reflect-metadata';
import { type INestApplication, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule, type Config } from './app.module.js';

/** Starts one instance. When it receives a signal to end, it hands running jobs on and releases its locks. */
export async function start({ port, ...config }: Config & { readonly port: number }): Promise<INestApplication> {
  const app = await NestFactory.create(AppModule.register(config));
  app.enableShutdownHooks();
  await app.listen(port, '127.0.0.1');
  new Logger('Instance').log(`${config.instance} listens on ${await app.getUrl()}`);
  return app;
}
