import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OnApplicationShutdown } from '@nestjs/common';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';

/** What is measured in this process, for whoever scrapes it. */
export class Metrics implements OnApplicationShutdown {
  // The application has an HTTP server already.
  private readonly exporter = new PrometheusExporter({ preventServerStart: true });
  readonly provider = new MeterProvider({ readers: [this.exporter] });

  /** Answers a request with everything that was measured so far. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    this.exporter.getMetricsRequestHandler(request, response);
  }

  onApplicationShutdown(): Promise<void> {
    return this.provider.shutdown();
  }
}
