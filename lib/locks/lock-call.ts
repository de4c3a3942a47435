import type { PermitChoice } from '../kinds/permits.js';
import { type AcquisitionKind, AcquisitionRecorder, type LockObserver, type OnHeld } from '../operate/observer.js';
import { Call } from '../redlock/call.js';
import type { Clock, Instant } from '../redlock/clock.js';
import { LockServiceStoppedError } from '../redlock/errors.js';
import type { Lease } from '../redlock/lease.js';
import type { CallSettings } from '../settings/settings.js';
import { FairWait, type WaitContext } from '../waiting/fair-wait.js';
import type { QueueEntry } from '../waiting/process-queue.js';
import { Waiter } from '../waiting/waiter.js';
import { callOf, HeldCall } from './held-call.js';

// The same for all calls of a lock service.
export interface CallService {
  readonly clock: Clock;
  readonly observer: LockObserver;
  // Anew for each acquisition; `undefined` for a lock.
  readonly choosePermits: (resources: readonly string[], permits: number | undefined) => PermitChoice | undefined;
  readonly letGo: (held: HeldCall, lease: Lease) => void;
}

interface LockCallOptions {
  readonly service: CallService;
  readonly waits: WaitContext;
  readonly resources: readonly string[];
  readonly call: CallSettings;
  readonly onHeld: OnHeld;
  readonly caller: string | undefined;
}

// One call of `acquire`, `withLock` and the like: it waits, takes a lock, and tells its observer.
export class LockCall extends Call {
  readonly waiter: Waiter;
  // `undefined` if no other call of this process wants the same resources.
  entry: QueueEntry | undefined;
  // Called at its end.
  leave: (() => void) | undefined;
  private wait: FairWait | undefined;
  // Of earlier acquisitions that its observer has not been told of.
  private attempts = 0;
  private recorder: AcquisitionRecorder | undefined;
  private isReported = false;

  constructor(private readonly options: LockCallOptions) {
    super();
    const { resources, call, service } = options;
    const { clock, observer } = service;
    this.recorder = this.newRecorder();
    this.waiter = new Waiter({ clock, observer, resources, call });
  }

  get resources(): readonly string[] {
    return this.options.resources;
  }

  get terms(): CallSettings {
    return this.options.call;
  }

  get cancellation(): Waiter {
    return this.waiter;
  }

  get since(): Instant {
    return this.waiter.since;
  }

  begin(isRepeated: boolean): FairWait {
    const { waits, service, resources, call } = this.options;
    const { waiter, entry } = this;
    const permits = service.choosePermits(resources, call.permits);
    return (this.wait = new FairWait(waits, { waiter, entry, permits, isRepeated }));
  }

  granted(): HeldCall {
    const { resources, call, caller, service } = this.options;
    const { entry, allAttempts: attempts, waiter } = this;
    entry?.becomeHolder();
    const { letGo } = service;
    return new HeldCall({ resources, call, entry, caller, attempts, waited: waiter.paused, letGo });
  }

  beginning(lease: Lease): void {
    const { recorder, waiter } = this;
    this.isReported = recorder !== undefined && lease.isHeld;
    if (this.isReported) recorder?.granted(this.allAttempts, waiter.paused);
  }

  // From now on, the lock tells the observer.
  begun(lease: Lease): void {
    if (this.isReported) callOf(lease).recorder = this.recorder;
  }

  unused(): void {
    this.attempts = this.allAttempts;
    if (this.isReported) {
      // The observers took longer than the lock lasted.
      this.recorder?.ended(undefined);
      this.recorder = this.newRecorder();
      this.waiter.paused = 0;
      this.attempts = 0;
    }
    this.entry?.waitAgain(this.waiter);
  }

  failed(reason: unknown): unknown {
    const { resources } = this;
    const wasHeld = reason instanceof LockServiceStoppedError && this.wait?.isHeldByOther === true;
    const error = wasHeld ? new LockServiceStoppedError(resources, true) : reason;
    this.recorder?.failed(error, this.allAttempts, this.waiter.paused);
    this.entry?.leave();
    return error;
  }

  end(): void {
    this.waiter.end();
    this.leave?.();
  }

  private get allAttempts(): number {
    return this.attempts + (this.wait?.attempts ?? 0);
  }

  private newRecorder(): AcquisitionRecorder | undefined {
    const { resources, call, onHeld, service } = this.options;
    const { observer, clock } = service;
    const listener = call.listener ?? observer.acquiring?.(resources, onHeld, acquisitionKindOf(call));
    return listener && new AcquisitionRecorder(listener, clock);
  }
}

function acquisitionKindOf({ isShared, permits }: CallSettings): AcquisitionKind {
  if (permits !== undefined) return 'permit';
  return isShared ? 'shared' : 'exclusive';
}
