import 'reflect-metadata';
import type { Server, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { type Config, MASTERS } from './config.js';
import { LocalMasters } from './masters/local-masters.js';

const PAGE = fileURLToPath(new URL('../public', import.meta.url));
/** Loads nothing from other origins, and lets no other page embed the buttons. */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Starts the masters, the instances and the page. All of them end when the application is closed.
 *
 * @throws if this machine has no Redis server and none can be installed; the message says what to type
 */
export async function start(config: Config): Promise<INestApplication> {
  const masters = await LocalMasters.start(MASTERS);
  const app = await NestFactory.create(AppModule.register(config, masters));
  app.getHttpAdapter().useStaticAssets?.(PAGE, {
    setHeaders: (response: ServerResponse) => response.setHeader('Content-Security-Policy', POLICY),
  });
  app.enableShutdownHooks();
  await app.listen(config.port, '127.0.0.1');
  // An open page leaves an idle connection behind, which must not delay the end.
  (app.getHttpServer() as Server).keepAliveTimeout = 500;
  return app;
}
