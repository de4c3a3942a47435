import { type Property, Violation } from '../properties/violation.js';
import { Chance } from './chance.js';
import { settlePromises } from './microtasks.js';
import type { Scheduler } from './scheduler.js';

/** What every run gives. */
export interface Outcome {
  readonly property: Property | undefined;
  readonly message: string | undefined;
  /** Equal for the same course of events. */
  readonly fingerprint: number;
  readonly events: number;
}

/** Plays a course of events until everything is over. */
export async function playOut(seed: number, scheduler: Scheduler, course: () => void): Promise<Outcome> {
  const { random } = Math;
  const chance = new Chance(seed, 99);
  // The delays between attempts to connect are the only randomness that is not injected.
  Math.random = () => chance.fraction();
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  try {
    // Leaves the promise reaction in which this function may be called.
    const error = await new Promise<unknown>((resolve) => setImmediate(() => resolve(errorOf(course))));
    Math.random = random;
    // Only after this turn does Node report unhandled rejections.
    await new Promise((resolve) => setImmediate(resolve));
    return { ...verdictOn(error ?? rejections[0]), fingerprint: scheduler.fingerprint, events: scheduler.steps };
  } finally {
    Math.random = random;
    process.off('unhandledRejection', onRejection);
  }
}

/** Runs events until a moment, or until there is nothing left to wait for. `check` runs after each. */
export function runUntil(
  scheduler: Scheduler,
  moment: number,
  { check, most, isEnough }: { check: () => void; most: number; isEnough?: (() => boolean) | undefined },
): void {
  while (scheduler.step(moment)) {
    settlePromises();
    check();
    if (scheduler.steps > most) throw new Violation('progress', scheduler.now, 'something goes round in circles');
    if (isEnough?.()) return;
  }
  scheduler.now = Math.max(scheduler.now, moment);
}

function errorOf(action: () => void): unknown {
  try {
    action();
    return undefined;
  } catch (error) {
    return error;
  }
}

function verdictOn(error: unknown): Pick<Outcome, 'property' | 'message'> {
  if (error === undefined) return { property: undefined, message: undefined };
  if (error instanceof Violation)
    return { property: error.property, message: `${error.message} (at ${error.at.toFixed(3)} ms)` };
  const message = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
  return { property: 'no unexpected error', message };
}
