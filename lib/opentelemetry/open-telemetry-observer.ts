import {
  type Attributes,
  type MeterProvider,
  metrics,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import type { MasterReply, MasterRequest } from '../core/master.interface.js';
import { RedlockConfigError } from '../core/errors.js';
import type { AcquisitionObserver, LockObserver, OnHeld } from '../core/observer.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { Instruments } from './instruments.js';
import { ObservedAcquisition } from './observed-acquisition.js';
import { ResourcePatterns } from './resource-patterns.js';

const SCOPE = 'nestjs-redlock';

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /**
   * Maps a resource to the value of the attribute `redlock.resource`. It should return few different values: the first
   * hundred are reported as they are, up to 64 characters each, and all later ones as `other`.
   * @default the part before the first colon: `order:*` for `order:42`, and `*` where there is no colon
   */
  readonly resourceOf?: (resource: string) => string;
  /** Attributes of every span and every measurement, for example to distinguish lock services. */
  readonly attributes?: Attributes;
  /** @default the provider that is registered globally when the first lock is requested */
  readonly tracerProvider?: TracerProvider;
  /** @default the provider that is registered globally when the first lock is requested */
  readonly meterProvider?: MeterProvider;
}

const OPTION_NAMES = [
  'resourceOf',
  'attributes',
  'tracerProvider',
  'meterProvider',
] as const satisfies (keyof OpenTelemetryOptions)[];

/** Turns the events of locks and masters into spans and metrics. */
export class OpenTelemetryObserver implements LockObserver {
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

  masterAnswered(master: string, operation: MasterRequest['op'], answer: MasterReply, milliseconds: number): void {
    const { masterAnswers, masterLatency } = this.sinks.instruments;
    const attributes = { ...this.options.attributes, 'redlock.master': master, 'redlock.operation': operation };
    masterAnswers.add(1, { ...attributes, 'redlock.answer': kindOf(answer) });
    if (answer.kind !== 'unreachable' && answer.kind !== 'timeout') {
      masterLatency.record(milliseconds / 1_000, attributes);
    }
  }

  /** Created on first use: instruments that are created before their provider is registered never record anything. */
  private get sinks(): { readonly tracer: Tracer; readonly instruments: Instruments } {
    const { tracerProvider = trace, meterProvider = metrics } = this.options;
    this.made ??= {
      tracer: tracerProvider.getTracer(SCOPE),
      instruments: new Instruments(meterProvider.getMeter(SCOPE)),
    };
    return this.made;
  }
}

function kindOf(answer: MasterReply): string {
  return answer.kind === 'timeout' && !answer.sent ? 'not-asked' : answer.kind;
}
