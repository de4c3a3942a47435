// Two copies of the package in one process: ESM and CommonJS where Node does not mix them, or two versions. The module
// comes from one copy, and everything that is used with it from the other.
import 'reflect-metadata';
import { equal, notEqual, ok, rejects } from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import * as esm from 'nestjs-redlock';

const require = createRequire(import.meta.url);
const cjs = require('nestjs-redlock');
const { memoryMasters, ManualClock } = require('nestjs-redlock/testing');
const { RedlockHealthIndicator, RedlockHealthModule } = require('nestjs-redlock/terminus');
const { openTelemetry } = require('nestjs-redlock/opentelemetry');

notEqual(cjs.LockService, esm.LockService);

class Reports {
  async daily() {
    return this.written();
  }

  async skipped() {
    return this.written();
  }

  written() {
    return 'written';
  }
}
lock('daily', cjs.WithLock('report', { ttl: '2s', wait: 0 }));
lock('skipped', cjs.WithLock('report', { ttl: '2s', onLocked: 'skip' }));

function lock(method, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(Reports.prototype, method);
  decorator(Reports.prototype, method, descriptor);
  Object.defineProperty(Reports.prototype, method, descriptor);
}

const spans = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const clock = new ManualClock();
class AppModule {}
Module({
  imports: [
    esm.RedlockModule.forRoot({
      masters: memoryMasters(3, clock),
      clock,
      observers: [openTelemetry({ tracerProvider })],
    }),
    TerminusModule,
    RedlockHealthModule,
  ],
  providers: [Reports],
})(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });

const reports = app.get(Reports);
equal(await reports.daily(), 'written');

const held = await app.get(cjs.getLockServiceToken()).acquire('report');
equal(await reports.skipped(), undefined);
await rejects(
  reports.daily(),
  (error) => error.code === 'LOCK_NOT_ACQUIRED' && error instanceof esm.LockNotAcquiredError,
);
await held.release();
equal(await reports.skipped(), 'written');
const outcomes = spans.getFinishedSpans().map(({ name, attributes }) => `${name} ${attributes['redlock.outcome']}`);
ok(outcomes.includes('redlock.acquire skipped'), outcomes.join());
ok(outcomes.includes('redlock.acquire held'), outcomes.join());

equal((await app.get(RedlockHealthIndicator).isHealthy('locks')).locks.status, 'up');
await app.close();

// The copies do not share the class as a token: the boot reports what is missing instead of injecting the other copy's
// service.
class NeedsClass {}
Reflect.defineMetadata('design:paramtypes', [cjs.LockService], NeedsClass);
class WrongModule {}
Module({ imports: [esm.RedlockModule.forRoot({ masters: 'memory' })], providers: [NeedsClass] })(WrongModule);
await rejects(NestFactory.createApplicationContext(WrongModule, { logger: false, abortOnError: false }), /LockService/);

console.log(JSON.stringify(['two copies work together']));
