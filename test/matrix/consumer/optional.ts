// Exercises the subpaths that need an optional peer.
import { deepEqual, equal, ok } from 'node:assert/strict';
import { Controller, Get, Module } from '@nestjs/common';
import { HealthCheck, type HealthCheckResult, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { InMemorySpanExporter, SimpleSpanProcessor, BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { RedlockHealthIndicator, RedlockHealthModule } from 'nestjs-redlock/terminus';
import { Accounts, start } from './application.js';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly redlock: RedlockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.redlock.isHealthy('locks')]);
  }
}

@Module({ imports: [TerminusModule, RedlockHealthModule], controllers: [HealthController] })
class HealthModule {}

export async function exerciseOptionalPeers(masters: readonly string[], keyPrefix: string): Promise<void> {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const app = await start({ masters, keyPrefix, observers: [openTelemetry({ tracerProvider })] }, [HealthModule]);
  try {
    await app.get(Accounts).deposit('b', 1);
    const reported = spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes['redlock.resource']]);
    deepEqual(reported, [
      ['redlock.acquire', 'account:*'],
      ['redlock.hold', 'account:*'],
    ]);

    const response = await fetch(`${await app.getUrl()}/health`);
    const health = (await response.json()) as HealthCheckResult;
    equal(response.status, 200);
    equal(health.details['locks']?.status, 'up');
    ok(JSON.stringify(health).includes('voting'));
  } finally {
    await app.close();
  }
}
