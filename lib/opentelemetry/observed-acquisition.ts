import {
  type Attributes,
  context,
  type Context,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { isLockError, type LockLostError } from '../core/errors.js';
import type { AcquisitionObserver, OnHeld, AcquisitionProgress } from '../core/observer.js';
import type { Instruments } from './instruments.js';

/** How an acquisition ended. */
type Outcome = 'granted' | 'held' | 'skipped' | 'unavailable' | 'stopped' | 'aborted';

/** Outcomes that the caller wants or expects, which are therefore not errors. */
const FINE: readonly Outcome[] = ['granted', 'skipped', 'aborted'];

/** Records spans and measurements of one acquisition and of the resulting lock. */
export class ObservedAcquisition implements AcquisitionObserver {
  private readonly caller: Context;
  private readonly acquiring: Span;
  private holding: Span | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly instruments: Instruments,
    /** Attributes of every span and measurement, including the pattern of the resource. */
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
