import type { Clock, Timer } from '../clock.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';
import type { Waiter } from './waiter.js';

interface PermitContext {
  readonly witness: Witness;
  readonly clock: Clock;
  readonly waiter: Waiter;
  /** Whether the attempt that follows is made even if the waiting budget ends before. */
  readonly isGuaranteed: boolean;
}

/**
 * Announces the ttl of a call to the masters, and returns the call with its ttl and `minHold` cut to what all masters
 * know. Called before each attempt and not once when waiting begins, so that the announcement is recent when the lock
 * is granted.
 *
 * @returns `undefined` if the budget ends first
 * @throws the reason with which the waiter was stopped
 */
export function permittedCall(
  wanted: CallSettings,
  { witness, clock, waiter, isGuaranteed }: PermitContext,
): CallSettings | Promise<CallSettings | undefined> {
  const permitted = witness.permit(Math.max(wanted.ttl, wanted.minHold));
  if (typeof permitted === 'number') return cutTo(permitted, wanted);
  return unlessOver(permitted, { clock, waiter, isGuaranteed }).then((ttl) => {
    waiter.check();
    return ttl === undefined ? undefined : cutTo(ttl, wanted);
  });
}

/** Resolves with `undefined` if the waiter is stopped first, or if its budget ends and this is not its guaranteed attempt. */
async function unlessOver(
  permitted: Promise<number>,
  { clock, waiter, isGuaranteed }: Omit<PermitContext, 'witness'>,
): Promise<number | undefined> {
  let timer: Timer | undefined;
  const over = new Promise<undefined>((resolve) => {
    waiter.interrupt = { giveUp: () => resolve(undefined) };
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    const arm = (): void => {
      timer = clock.schedule(Math.ceil(waiter.left), () => (waiter.isOver ? resolve(undefined) : arm()));
    };
    if (!isGuaranteed) arm();
  });
  const ttl = await Promise.race([permitted, over]);
  timer?.cancel();
  waiter.interrupt = undefined;
  return ttl;
}

function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
