import { type Clock, elapsedBetween, type Instant } from './clock.js';
import { LockLostError } from './errors.js';
import type { Mutex } from './mutex.js';
import type { TellLoss } from './round.js';
import type { PassedLock, Terms } from './terms.js';

// A process passes a lock on for so many milliseconds after it was acquired: then it is the turn of other processes.
const PASSED_FOR = 5;
// At least this share of the ttl is left.
const FRESH = 0.8;

// A lease, when its work has ended.
interface Ended {
  readonly terms: Pick<Terms<never>, 'resources' | 'call' | 'successorFor'>;
  readonly mutex: Mutex;
  readonly context: { readonly clock: Clock };
  readonly ttl: number;
  readonly acquiredAt: Instant;
  readonly isUsed: boolean;
  readonly mayPassOn: boolean;
  readonly passed: PassedLock | undefined;
  remainingAt(now: Instant): number;
  noteLoss(loss: LockLostError): void;
}

// Resolves when the masters have shown whether the lock was lost. `isWorthTelling`: the holder relied on it until now.
export function giveBack(lease: Ended, now: Instant, isWorthTelling: boolean): Promise<void> {
  const { minHold } = lease.terms.call;
  // Protocol 7.4
  const keepFor =
    minHold === 0 || !lease.isUsed ? 0 : Math.max(0, Math.ceil(minHold - elapsedBetween(lease.acquiredAt, now)));
  const { mutex, passed } = lease;
  const left = lease.remainingAt(now);
  // Protocol 7.6
  const tellLoss: TellLoss = (quorumCall) => {
    // The extension may have been withdrawn before it was sent, and then it shows nothing.
    if (passed && passed.outcome?.isLost !== false) passed.tellLoss(quorumCall);
    // By then, the keys may have expired on the way.
    if (!isWorthTelling || elapsedBetween(now, lease.context.clock.read()) >= left) return;
    const { ownedByOther, report } = quorumCall;
    lease.noteLoss(new LockLostError(lease.terms.resources, ownedByOther ? 'owner-changed' : 'gone', report));
  };
  const extended = isWorthTelling && keepFor === 0 ? passOn(lease, now, tellLoss) : undefined;
  if (extended) return extended;
  const released = mutex.release(keepFor, now, isWorthTelling || passed ? tellLoss : undefined);
  if (passed) passed.ending = released;
  return released;
}

// To the next call of this process, whose work begins before the masters are asked. For them, it is one lock that goes on:
// an extension follows, which tells the holder before of a loss as a release would. `undefined` if it is to be released.
// Protocol 5.8
function passOn(lease: Ended, now: Instant, tellLoss: TellLoss): Promise<void> | undefined {
  const { mutex, ttl, terms, mayPassOn } = lease;
  const isYoung = elapsedBetween(mutex.heldSince, now) < PASSED_FOR && mutex.remainingAt(now) >= ttl * FRESH;
  const successor = mayPassOn && isYoung && mutex.allHaveAnswered ? terms.successorFor(ttl) : undefined;
  if (!successor) return undefined;
  const extension = mutex.extend(ttl);
  const passed: PassedLock = { mutex, extension, tellLoss };
  successor.take(passed);
  return extension.then(({ quorumCall }) => {
    passed.outcome = quorumCall;
    if (!quorumCall.isLost) return undefined;
    if (!passed.ending) tellLoss(quorumCall);
    return passed.ending;
  });
}
