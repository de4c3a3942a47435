import type { Clock, Instant, Timer } from '../clock.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';
import type { Waiter } from './waiter.js';

interface PermitContext {
  readonly clock: Clock;
  readonly waiter: Waiter;
  /** Whether the attempt that follows is made even if the waiting budget ends before. */
  readonly isGuaranteed: boolean;
}

/**
 * Announces the ttl of a call to the masters. Called before each attempt and not once when waiting begins, so that the
 * announcement is recent when the lock is granted.
 *
 * @returns the largest ttl that all masters know, in milliseconds
 */
export function allowedTtl({ ttl, minHold }: CallSettings, witness: Witness, now?: Instant): number | Promise<number> {
  return witness.announceTtl(Math.max(ttl, minHold), now);
}

/**
 * Waits for a permit, and returns the call that it permits.
 *
 * @returns `undefined` if the budget ends first
 * @throws the reason with which the waiter was stopped
 */
export async function whenPermitted(
  wanted: CallSettings,
  permitted: Promise<number>,
  context: PermitContext,
): Promise<CallSettings | undefined> {
  const ttl = await unlessOver(permitted, context);
  context.waiter.check();
  return ttl === undefined ? undefined : cutTo(ttl, wanted);
}

/** Resolves with `undefined` if the waiter is stopped first, or if its budget ends and this is not its guaranteed attempt. */
async function unlessOver(
  permitted: Promise<number>,
  { clock, waiter, isGuaranteed }: PermitContext,
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

/** The call with its ttl and `minHold` cut to a ttl in milliseconds. */
export function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
