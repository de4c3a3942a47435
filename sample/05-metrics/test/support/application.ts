import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { AppModule } from '../../src/app.module.js';

const apps: INestApplication[] = [];

export interface Running {
  readonly app: INestApplication;
  readonly url: string;
}

/** Serves the application on a free port. */
export async function start(locks: RedlockModuleOptions): Promise<Running> {
  const testing = await Test.createTestingModule({ imports: [AppModule.register(locks)] }).compile();
  const app = testing.createNestApplication();
  app.useLogger(false);
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}

/** Closes all applications of a test. */
export async function closeAll(): Promise<void> {
  await Promise.all(apps.splice(0).map((app) => app.close()));
}

export async function ship(url: string, id: string): Promise<number> {
  const response = await fetch(`${url}/orders/${id}/shipment`, { method: 'POST' });
  await response.arrayBuffer();
  return response.status;
}
