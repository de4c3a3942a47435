import type { Attributes, BatchObservableCallback, Meter } from '@opentelemetry/api';
import type { ElectionObserver } from '../core/leadership.js';
import type { JobObserver, JobRunReport, JobSkip } from '../core/jobs/job-observer.js';
import { ResourcePatterns } from '../core/contention/patterns.js';
import type { Instruments } from './instruments.js';

export class JobMetrics implements JobObserver {
  private readonly names = new ResourcePatterns((name) => name);
  // When each job last succeeded, in seconds since the epoch.
  private readonly successes = new Map<string, number>();

  // `instruments` gives `undefined` before there is a provider of meters.
  constructor(
    private readonly instruments: () => Instruments | undefined,
    private readonly attributes: Attributes,
  ) {}

  ended(job: string, { outcome, startedAt, endedAt }: JobRunReport): void {
    const attributes = { ...this.attributesOf(job), 'redlock.outcome': outcome };
    const instruments = this.instruments();
    instruments?.jobRuns.add(1, attributes);
    if (startedAt && endedAt) {
      instruments?.jobDuration.record(Math.max(0, endedAt.getTime() - startedAt.getTime()) / 1_000, attributes);
    }
  }

  unfinished(job: string): void {
    this.instruments()?.jobRuns.add(1, { ...this.attributesOf(job), 'redlock.outcome': 'unfinished' });
  }

  skipped(job: string, { reason }: JobSkip): void {
    this.instruments()?.jobSkips.add(1, { ...this.attributesOf(job), 'redlock.skip.reason': reason });
  }

  succeeded(job: string, { endedAt }: JobRunReport): void {
    const name = this.names.of([job]);
    const moment = (endedAt?.getTime() ?? 0) / 1_000;
    this.successes.set(name, Math.max(moment, this.successes.get(name) ?? 0));
    // The gauge begins with the first instrument.
    this.instruments();
  }

  // At each collection of metrics. Returns a function that ends the reports.
  report(meter: Meter, { jobLastSuccess }: Instruments): () => void {
    const observe: BatchObservableCallback = (result) => {
      for (const [name, moment] of this.successes) {
        result.observe(jobLastSuccess, moment, { ...this.attributes, 'redlock.job': name });
      }
    };
    meter.addBatchObservableCallback(observe, [jobLastSuccess]);
    return () => meter.removeBatchObservableCallback(observe, [jobLastSuccess]);
  }

  private attributesOf(job: string): Attributes {
    return { ...this.attributes, 'redlock.job': this.names.of([job]) };
  }
}

export class ElectionMetrics implements ElectionObserver {
  private readonly names = new ResourcePatterns((name) => name);

  // `instruments` gives `undefined` before there is a provider of meters.
  constructor(
    private readonly instruments: () => Instruments | undefined,
    private readonly attributes: Attributes,
  ) {}

  elected(election: string, _term: number, taken: number): void {
    const attributes = this.attributesOf(election);
    this.instruments()?.leading.add(1, attributes);
    this.instruments()?.timeToLead.record(taken / 1_000, attributes);
  }

  resigned(election: string): void {
    this.end(election, 'resigned');
  }

  lost(election: string): void {
    this.end(election, 'lost');
  }

  overrun(election: string): void {
    this.instruments()?.overruns.add(1, this.attributesOf(election));
  }

  private end(election: string, outcome: string): void {
    const attributes = this.attributesOf(election);
    this.instruments()?.leading.add(-1, attributes);
    this.instruments()?.terms.add(1, { ...attributes, 'redlock.outcome': outcome });
  }

  private attributesOf(election: string): Attributes {
    return { ...this.attributes, 'redlock.election': this.names.of([election]) };
  }
}
