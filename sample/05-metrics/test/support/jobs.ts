import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Test } from '@nestjs/testing';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { memoryMasters } from 'nestjs-redlock/testing';
import { Metrics } from '../../src/metrics/metrics.js';

/** Serves the metrics of a process that has run a job and holds a permit, by the exporter of the application. */
export async function exportJobs(): Promise<AsyncDisposable & { readonly url: string }> {
  const metrics = new Metrics();
  const observer = openTelemetry({ meterProvider: metrics.provider, resourceOf: (name) => name });
  const locks = RedlockModule.forRoot({ masters: memoryMasters(1), observers: [observer] });
  const app = await Test.createTestingModule({ imports: [locks] }).compile();
  const permit = await app.get(LockService).acquire('stripe', { permits: 5, ttl: '10s' });
  const now = new Date();
  const run = { scheduledFor: now, startedAt: now, endedAt: now, instance: 'a', attempt: 1, error: undefined };
  observer.jobs?.succeeded?.('report', { ...run, outcome: 'ok' });

  const server = createServer((request, response) => metrics.answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      await permit.release();
      await app.close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      await metrics.onApplicationShutdown();
    },
  };
}
