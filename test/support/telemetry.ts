import { type Attributes, type MeterProvider as MeterProviderApi, type TracerProvider } from '@opentelemetry/api';
import { type DataPoint, type Histogram, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** One data point of a metric. */
export interface Point {
  readonly attributes: Attributes;
  /** The value of a counter, or the number of values of a histogram. */
  readonly value: number;
  /** The sum of a histogram. */
  readonly sum: number | undefined;
}

export interface Measured {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly points: readonly Point[];
}

/** Collects spans and metrics in memory. */
export class Telemetry {
  private readonly exporter = new InMemorySpanExporter();
  private readonly reader = new Reader();
  readonly tracerProvider: TracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(this.exporter)],
  });
  readonly meterProvider: MeterProviderApi = new MeterProvider({ readers: [this.reader] });

  /** Ended spans, in the order in which they ended. */
  get spans(): ReadableSpan[] {
    return this.exporter.getFinishedSpans();
  }

  async metrics(): Promise<Measured[]> {
    const { resourceMetrics, errors } = await this.reader.collect();
    if (errors.length > 0) throw errors[0];
    return resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .map(({ descriptor, dataPoints }) => ({
        ...descriptor,
        points: (dataPoints as DataPoint<unknown>[]).map(pointOf),
      }));
  }

  /** The data points of one metric. */
  async points(name: string): Promise<readonly Point[]> {
    return (await this.metrics()).find((metric) => metric.name === name)?.points ?? [];
  }
}

function pointOf({ attributes, value }: DataPoint<unknown>): Point {
  if (typeof value === 'number') return { attributes, value, sum: undefined };
  const { count, sum } = value as Histogram;
  return { attributes, value: count, sum };
}
