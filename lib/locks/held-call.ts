import type { Held, HeldKeys } from '../fencing/held.js';
import type { Kind } from '../kinds/kind.js';
import type { Master } from '../masters/master.interface.js';
import type { AcquisitionRecorder } from '../operate/observer.js';
import { elapsedBetween } from '../redlock/clock.js';
import type { Lease } from '../redlock/lease.js';
import type { Successor, Terms } from '../redlock/terms.js';
import type { CallSettings } from '../settings/settings.js';
import type { OwnHolder } from '../waiting/lock-not-acquired.error.js';
import type { QueueEntry } from '../waiting/process-queue.js';
import { holderFrom, type LockHolder } from '../redlock/holder.js';

type HeldCallOptions = Pick<HeldCall, 'resources' | 'call' | 'entry' | 'caller' | 'attempts' | 'waited' | 'letGo'>;
// What others read of it.
type HeldTerms = Omit<HeldCall, 'entry' | 'letGo'>;

// What a lock keeps of the call that acquired it.
export class HeldCall implements Terms<Lease> {
  readonly resources: readonly string[];
  readonly call: CallSettings;
  readonly entry: QueueEntry | undefined;
  // The decorated method.
  readonly caller: string | undefined;
  readonly attempts: number;
  // In milliseconds.
  readonly waited: number;
  // Absent without an observer, and before work has begun.
  recorder: AcquisitionRecorder | undefined;
  readonly letGo: (held: HeldCall, lease: Lease) => void;

  constructor({ resources, call, entry, caller, attempts, waited, letGo }: HeldCallOptions) {
    this.resources = resources;
    this.call = call;
    this.entry = entry;
    this.caller = caller;
    this.attempts = attempts;
    this.waited = waited;
    this.letGo = letGo;
  }

  successorFor(ttl: number): Successor | undefined {
    const { isShared, permits } = this.call;
    return isShared || permits !== undefined ? undefined : this.entry?.successorFor(ttl);
  }

  ended(lease: Lease): void {
    this.recorder?.ended(lease.lost);
    this.letGo(this, lease);
  }
}

// Each lease of a lock service has them.
export function callOf({ terms }: Lease): HeldTerms {
  return terms as HeldTerms;
}

function kindOf({ mutex }: Lease): Kind {
  return mutex.primitive as Kind;
}

// Counted from 0; `undefined` unless it is a permit.
export function slotOf(lease: Lease): number | undefined {
  return kindOf(lease).slot;
}

// As the masters name it; `undefined` unless it is an exclusive lock on one resource.
export function holderOf(lease: Lease): LockHolder | undefined {
  const { isShared, slot } = kindOf(lease);
  return isShared || slot !== undefined || lease.resources.length > 1 ? undefined : holderFrom(lease.mutex.token);
}

// For a call of this process that has waited for it.
export function asOwn(lease: Lease): OwnHolder {
  const { mutex, ttl, context } = lease;
  const { isShared, slot } = kindOf(lease);
  return {
    holder: isShared || slot !== undefined ? undefined : holderFrom(mutex.token),
    caller: callOf(lease).caller,
    freeAfter: Math.max(0, ttl - elapsedBetween(mutex.since, context.clock.read())),
  };
}

// A lock, as fencing tokens and states know it.
export function heldBy(lease: Lease, context: Held['context'], masters: readonly Master[]): Held {
  const { mutex, resources } = lease;
  lease.mayPassOn = false;
  const { isShared, slot } = kindOf(lease);
  const owned: HeldKeys = {
    ...{ masters, keys: kindOf(lease).names.keys, token: mutex.token },
    timesSetAgain: (master) => mutex.unsure?.timesSetAgain(master) ?? 0,
    mayBeSet: (master) => mutex.unsure?.mayBeSet(master) ?? false,
  };
  return {
    ...{ resources, isShared, slot, owned, context },
    get ttl() {
      return lease.ttl;
    },
    get remaining() {
      return lease.remaining;
    },
    throwIfLost: () => lease.throwIfLost(),
    lose: (loss) => lease.lose(loss),
    onEnd: (listener) => lease.onEnd(listener),
  };
}
