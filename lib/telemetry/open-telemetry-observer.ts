import {
  type Attributes,
  type MeterProvider,
  metrics,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import type { Answer, Request } from '../core/master.interface.js';
import { RedlockConfigError } from '../core/errors.js';
import type { AcquisitionObserver, Observer, OnHeld } from '../core/observer.js';
import { checkOptionNames } from '../core/option-names.js';
import { Instruments } from './instruments.js';
import { ObservedAcquisition } from './observed-acquisition.js';
import { ResourcePatterns } from './resource-patterns.js';

const SCOPE = 'nestjs-redlock';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /**
   * What the attribute `redlock.resource` says of a resource. It should give few different values: of the first hundred
   * each is told as it is, up to 64 characters, and all later ones are `other`.
   * @default what stands before the first colon: `order:*` for `order:42`, and `*` where there is no colon
   */
  readonly resourceOf?: (resource: string) => string;
  /** Attributes of every span and every measurement, for example to tell lock services apart. */
  readonly attributes?: Attributes;
  /** @default the one that is registered globally when the first lock is asked for */
  readonly tracerProvider?: TracerProvider;
  /** @default the one that is registered globally when the first lock is asked for */
  readonly meterProvider?: MeterProvider;
}

const OPTION_NAMES = [
  'resourceOf',
  'attributes',
  'tracerProvider',
  'meterProvider',
] as const satisfies (keyof OpenTelemetryOptions)[];

/** Makes spans and metrics of what happens to locks. */
export class OpenTelemetryObserver implements Observer {
  private readonly patterns: ResourcePatterns;
  private made: { readonly tracer: Tracer; readonly instruments: Instruments } | undefined;

  constructor(private readonly options: OpenTelemetryOptions) {
    checkOptionNames('openTelemetry', options, OPTION_NAMES);
    const { resourceOf } = options;
    if (resourceOf !== undefined && typeof resourceOf !== 'function') {
      throw new RedlockConfigError('openTelemetry: resourceOf', resourceOf, 'must be a function');
    }
    this.patterns = new ResourcePatterns(resourceOf);
  }

  acquiring(resources: readonly string[], onHeld: OnHeld): AcquisitionObserver {
    const { tracer, instruments } = this.sinks;
    const attributes = { ...this.options.attributes, 'redlock.resource': this.patterns.of(resources) };
    return new ObservedAcquisition(tracer, instruments, attributes, onHeld);
  }

  masterAnswered(master: string, operation: Request['op'], answer: Answer, milliseconds: number): void {
    const { masterAnswers, masterLatency } = this.sinks.instruments;
    const attributes = { ...this.options.attributes, 'redlock.master': master, 'redlock.operation': operation };
    masterAnswers.add(1, { ...attributes, 'redlock.answer': kindOf(answer) });
    if (answer.kind !== 'unreachable' && answer.kind !== 'timeout') {
      masterLatency.record(milliseconds / 1_000, attributes);
    }
  }

  /** Made late: instruments of a provider that is not registered yet would measure nothing for ever. */
  private get sinks(): { readonly tracer: Tracer; readonly instruments: Instruments } {
    const { tracerProvider = trace, meterProvider = metrics } = this.options;
    this.made ??= {
      tracer: tracerProvider.getTracer(SCOPE),
      instruments: new Instruments(meterProvider.getMeter(SCOPE)),
    };
    return this.made;
  }
}

function kindOf(answer: Answer): string {
  return answer.kind === 'timeout' && !answer.sent ? 'not-asked' : answer.kind;
}
