import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OnApplicationShutdown } from '@nestjs/common';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';

/** The metrics of this process, for a scraper. */
export class Metrics implements OnApplicationShutdown {
  // The application already has an HTTP server.
  private readonly exporter = new PrometheusExporter({ preventServerStart: true });
  readonly provider = new MeterProvider({ readers: [this.exporter] });

  /** Answers a request with all metrics. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    this.exporter.getMetricsRequestHandler(request, response);
  }

  onApplicationShutdown(): Promise<void> {
    return this.provider.shutdown();
  }
}
