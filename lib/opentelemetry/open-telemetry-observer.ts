import {
  type Attributes,
  type BatchObservableCallback,
  context,
  type Context,
  createNoopMeter,
  type Meter,
  type MeterProvider,
  metrics,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import {
  type AcquisitionKind,
  type AcquisitionObserver,
  type AcquisitionProgress,
  type ElectionObserver,
  isLockError,
  type JobObserver,
  type JobRunReport,
  type JobSkip,
  type LockLostError,
  type LockObserver,
  type MasterReply,
  type MasterRequest,
  type MasterState,
  type ObservedService,
  type OnHeld,
  type RedlockStatus,
} from '../index.js';
import { schema } from '../internal.js';
import { ResourcePatterns } from './resource-patterns.js';
import { instrumentsOf } from './instruments.js';

type Instruments = ReturnType<typeof instrumentsOf>;

type Outcome = 'granted' | 'held' | 'skipped' | 'unavailable' | 'stopped' | 'aborted';

// The caller wants or expects these outcomes: they are no errors.
const FINE: readonly Outcome[] = ['granted', 'skipped', 'aborted'];

// Spans and measurements of one acquisition and of the resulting lock.
class ObservedAcquisition implements AcquisitionObserver {
  private readonly caller: Context;
  private readonly acquiring: Span;
  private holding: Span | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly instruments: Instruments,
    // Of every span and measurement, including the pattern of the resource.
    private readonly attributes: Attributes,
    private readonly onHeld: OnHeld,
  ) {
    this.caller = context.active();
    this.acquiring = tracer.startSpan('redlock.acquire', { attributes }, this.caller);
    instruments.waiters.add(1, attributes);
  }

  granted(progress: AcquisitionProgress): void {
    this.conclude('granted', progress);
    const { attributes } = this;
    this.holding = this.tracer.startSpan('redlock.hold', { attributes }, this.caller);
    this.instruments.held.add(1, attributes);
  }

  failed(error: unknown, progress: AcquisitionProgress): void {
    const outcome = outcomeOf(error, this.onHeld);
    // The code and not the message, which contains the names of the resources.
    if (isLockError(error)) this.acquiring.setAttribute('error.type', error.code);
    this.conclude(outcome, progress);
  }

  ended(held: number, loss: LockLostError | undefined): void {
    const { attributes, instruments, holding } = this;
    const outcome = { 'redlock.outcome': loss ? 'lost' : 'released' };
    instruments.held.add(-1, attributes);
    instruments.holdDuration.record(held / 1_000, { ...attributes, ...outcome });
    holding?.setAttributes(outcome);
    if (loss) {
      const cause = { 'redlock.loss.cause': loss.cause };
      instruments.lost.add(1, { ...attributes, ...cause });
      holding?.setAttributes({ ...cause, 'error.type': loss.code }).setStatus({ code: SpanStatusCode.ERROR });
    }
    holding?.end();
  }

  within<T>(work: () => T): T {
    if (!this.holding) return work();
    return context.with(trace.setSpan(context.active(), this.holding), work);
  }

  private conclude(outcome: Outcome, { attempts, taken, waited }: AcquisitionProgress): void {
    const { attributes, instruments, acquiring } = this;
    instruments.waiters.add(-1, attributes);
    const concluded = { ...attributes, 'redlock.outcome': outcome };
    instruments.acquireDuration.record(taken / 1_000, concluded);
    if (waited > 0) instruments.waitDuration.record(waited / 1_000, concluded);
    acquiring.setAttributes({ 'redlock.outcome': outcome, 'redlock.attempts': attempts });
    if (!FINE.includes(outcome)) acquiring.setStatus({ code: SpanStatusCode.ERROR });
    acquiring.end();
  }
}

function outcomeOf(error: unknown, onHeld: OnHeld): Outcome {
  const code = isLockError(error) ? error.code : '';
  if (code === 'LOCK_NOT_ACQUIRED') return onHeld === 'skip' ? 'skipped' : 'held';
  if (code === 'QUORUM_UNAVAILABLE') return 'unavailable';
  return code === 'LOCK_SERVICE_STOPPED' ? 'stopped' : 'aborted';
}

const SCOPE = 'nestjs-redlock';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /**
   * Maps a resource to the value of the attribute `redlock.resource`. It should return few different values: the first
   * hundred are reported as they are, up to 64 characters each, and all later ones as `other`.
   * @default the part before the first colon: `order:*` for `order:42`, and `*` where there is no colon
   */
  readonly resourceOf?: (resource: string) => string;
  /** Attributes of every span and every measurement, in addition to the name of the lock service. */
  readonly attributes?: Attributes;
  /** @default the provider that is registered globally when the first lock is requested */
  readonly tracerProvider?: TracerProvider;
  /**
   * @default the provider that is registered globally when the first lock is requested; for the gauges of an application
   * that requests no lock, when the application starts
   */
  readonly meterProvider?: MeterProvider;
}

const TABLE = {
  resourceOf: schema.optional(schema.method<NonNullable<OpenTelemetryOptions['resourceOf']>>('a function')),
  attributes: schema.optional(schema.only<Attributes>('an object', schema.isObject)),
  tracerProvider: schema.optional(schema.objectWith<TracerProvider>(['getTracer'])),
  meterProvider: schema.optional(schema.objectWith<MeterProvider>(['getMeter'])),
} satisfies schema.TableOf<OpenTelemetryOptions>;

interface Sinks {
  readonly tracer: Tracer;
  readonly instruments: Instruments;
}

export class OpenTelemetryObserver implements LockObserver {
  private readonly patterns: ResourcePatterns;
  private made: Sinks | undefined;
  private gauges: readonly (() => void)[] = [];
  readonly jobs: JobMetrics;
  readonly elections: ElectionMetrics;

  constructor(
    private readonly options: OpenTelemetryOptions,
    // `undefined` if the events come from any service.
    private readonly service?: ObservedService,
  ) {
    this.patterns = new ResourcePatterns(schema.readOptions('openTelemetry', options, TABLE).resourceOf);
    const instruments = (): Instruments | undefined => this.sinksIfRegistered()?.instruments;
    this.jobs = new JobMetrics(instruments, { ...options.attributes });
    this.elections = new ElectionMetrics(instruments, { ...options.attributes });
  }

  started(service: ObservedService): LockObserver {
    const attributes = { ...this.options.attributes, 'redlock.service': service.name };
    return new OpenTelemetryObserver({ ...this.options, attributes }, service);
  }

  firstStatus(): void {
    // An application that takes no lock reports the state of its masters, too.
    this.sinksIfRegistered();
  }

  stopped(): void {
    for (const end of this.gauges) end();
  }

  acquiring(resources: readonly string[], onHeld: OnHeld, kind: AcquisitionKind = 'exclusive'): AcquisitionObserver {
    const { tracer, instruments } = this.sinks;
    // Absent for exclusive locks, so that their series are those of versions without other kinds.
    const attributes = { ...this.attributesOf(resources), ...(kind !== 'exclusive' && { 'redlock.kind': kind }) };
    return new ObservedAcquisition(tracer, instruments, attributes, onHeld);
  }

  lockInDanger(resources: readonly string[]): void {
    this.sinks.instruments.endangered.add(1, this.attributesOf(resources));
  }

  masterAnswered(master: string, operation: MasterRequest['op'], answer: MasterReply, milliseconds: number): void {
    const { masterAnswers, masterLatency } = this.sinks.instruments;
    const attributes = { ...this.options.attributes, 'redlock.master': master, 'redlock.operation': operation };
    masterAnswers.add(1, { ...attributes, 'redlock.answer': kindOf(answer) });
    if (answer.kind !== 'unreachable' && answer.kind !== 'timeout') {
      masterLatency.record(milliseconds / 1_000, attributes);
    }
  }

  readonly masterLost = this.counting('master-lost');
  readonly masterFound = this.counting('master-found');
  readonly masterSilent = this.counting('master-silent');
  readonly masterAnswersAgain = this.counting('master-answers-again');
  readonly masterQuarantined = this.counting('master-quarantined');
  readonly masterRefused = this.counting('master-refused');
  readonly masterVotesAgain = this.counting('master-votes-again');
  readonly masterAtRisk = this.counting('master-at-risk');
  readonly masterRiskEnded = this.counting('master-risk-ended');

  quorumLost(): void {
    this.count('quorum-lost');
  }

  quorumRestored(): void {
    this.count('quorum-restored');
  }

  private counting(event: string): (master: string) => void {
    return (master) => this.count(event, { 'redlock.master': master });
  }

  private count(event: string, attributes: Attributes = {}): void {
    this.sinksIfRegistered()?.instruments.events.add(1, {
      ...this.options.attributes,
      'redlock.event': event,
      ...attributes,
    });
  }

  private attributesOf(resources: readonly string[]): Attributes {
    return { ...this.options.attributes, 'redlock.resource': this.patterns.of(resources) };
  }

  // `undefined` before a provider of meters is registered.
  private sinksIfRegistered(): Sinks | undefined {
    const { meterProvider = metrics } = this.options;
    return this.made || meterProvider.getMeter(SCOPE) !== createNoopMeter() ? this.sinks : undefined;
  }

  // Created on first use: instruments that are created before their provider is registered never record anything.
  private get sinks(): Sinks {
    this.made ??= this.make();
    return this.made;
  }

  private make(): Sinks {
    const { tracerProvider = trace, meterProvider = metrics, attributes = {} } = this.options;
    const meter = meterProvider.getMeter(SCOPE);
    const instruments = instrumentsOf(meter);
    const { service, jobs } = this;
    this.gauges = [
      jobs.report(meter, instruments),
      ...(service ? [observeStatus(meter, instruments, { status: service.status, attributes })] : []),
    ];
    return { tracer: tracerProvider.getTracer(SCOPE), instruments };
  }
}

function kindOf(answer: MasterReply): string {
  return answer.kind === 'timeout' && !answer.sent ? 'not-asked' : answer.kind;
}

class JobMetrics implements JobObserver {
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

class ElectionMetrics implements ElectionObserver {
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

const STATES: readonly MasterState[] = ['voting', 'quarantined', 'silent', 'down', 'refused'];

// At each collection of metrics, also while no lock is used. Returns a function that ends the reports.
function observeStatus(
  meter: Meter,
  { mastersVoting, masterState, quorumAvailable }: Instruments,
  { status, attributes }: { readonly status: () => RedlockStatus; readonly attributes: Attributes },
): () => void {
  const gauges = [mastersVoting, masterState, quorumAvailable];
  const observe: BatchObservableCallback = (result) => {
    const present = status();
    result.observe(mastersVoting, present.masters.filter(({ state }) => state === 'voting').length, attributes);
    result.observe(quorumAvailable, present.canVote ? 1 : 0, attributes);
    for (const { master, state } of present.masters) {
      for (const each of STATES) {
        const labels = { ...attributes, 'redlock.master': master, 'redlock.state': each };
        result.observe(masterState, each === state ? 1 : 0, labels);
      }
    }
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}
