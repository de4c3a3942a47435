import type { Clock } from '../redlock/clock.js';
import type { LockLostError } from '../redlock/errors.js';
import type { Random } from '../redlock/holder.js';
import type { Master } from '../masters/master.interface.js';
import type { Settings } from '../settings/settings.js';

// What the masters have of one lock.
export interface HeldKeys {
  readonly masters: readonly Master[];
  readonly keys: readonly string[];
  readonly token: string;
  // How often the master was asked to set the keys again: another holder may have had them before.
  timesSetAgain(master: Master): number;
  // A request that sets them may still take effect there.
  mayBeSet(master: Master): boolean;
}

// All that fencing tokens and states know of the lock under which they work.
export interface Held {
  readonly resources: readonly string[];
  readonly isShared: boolean;
  // Counted from 0; `undefined` for a lock.
  readonly slot: number | undefined;
  readonly owned: HeldKeys;
  readonly context: { readonly settings: Settings; readonly clock: Clock; readonly random: Random };
  // Milliseconds.
  readonly ttl: number;
  // Milliseconds for which the lock can be relied on.
  readonly remaining: number;
  throwIfLost(): void;
  lose(loss: LockLostError): void;
  // When the lock is released or lost.
  onEnd(listener: () => void): void;
}
