// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { Module } from '@nestjs/common';
import { metrics, trace } from '@opentelemetry/api';
import { type LockObserver, RedlockModule } from 'nestjs-redlock';
import { openTelemetry, type OpenTelemetryOptions } from 'nestjs-redlock/opentelemetry';

const options: OpenTelemetryOptions = {
  resourceOf: (resource) => resource.split('/')[0] ?? 'none',
  attributes: { 'app.locks': 'billing', shard: 3 },
  tracerProvider: trace.getTracerProvider(),
  meterProvider: metrics.getMeterProvider(),
};

export const counting: LockObserver = {
  acquiring: (resources, onHeld) => ({
    granted: ({ attempts, taken, waited }) => [resources.length, attempts, taken, waited],
    failed: (error) => [error instanceof Error, onHeld === 'skip'],
    ended: (held, loss) => [held > 0, loss?.cause === 'expired'],
    within: (work) => work(),
  }),
  masterAnswered: (master, operation, answer, milliseconds) => [
    master,
    operation === 'acquire',
    answer.kind === 'held',
    milliseconds,
  ],
};

// @ts-expect-error a pattern is a text
openTelemetry({ resourceOf: (resource) => resource.length });

// @ts-expect-error there is no such event
export const wrong: LockObserver = { acquired: () => undefined };

@Module({
  imports: [
    RedlockModule.forRoot({ masters: 'memory', observers: [openTelemetry(), openTelemetry(options), counting] }),
    RedlockModule.forRootAsync({ name: 'b', useFactory: () => ({ masters: 'memory', observers: [openTelemetry()] }) }),
    // @ts-expect-error observers are a list
    RedlockModule.forRoot({ masters: 'memory', observers: openTelemetry() }),
  ],
})
export class AppModule {}
