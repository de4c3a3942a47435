import { elapsedBetween, type Instant } from './clock.js';
import type { Random } from './random.js';

/** The next extension is due after this share of the ttl. Protocol 6.1. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is retried after at most this share of the ttl: soon enough, without a hot loop. */
export const RETRY_AFTER = 1 / 10;
/** A lock is in danger if an extension fails while no more than this share of the ttl is left. */
export const DANGER_BELOW = 1 / 3;
/** A timer may fire early by this share of the period that it covers, so that timers of several locks coincide. */
const TIMER_SLACK = 1 / 50;
/** Timers have a resolution of one millisecond: a shorter remaining validity cannot be relied on. */
export const TIMER_RESOLUTION = 1;

/** When an extension is due: `after` milliseconds after `since`, or up to `slack` milliseconds earlier. */
export interface Due {
  readonly since: Instant;
  readonly after: number;
  readonly slack: number;
}

export function nextDue(ttl: number, since: Instant): Due {
  return { since, after: ttl * EXTEND_AFTER, slack: ttl * TIMER_SLACK };
}

export function retryDue(ttl: number, since: Instant, random: Random): Due {
  const bound = ttl * RETRY_AFTER;
  return { since, after: bound * (1 + random.fraction()) * 0.5, slack: bound * TIMER_SLACK };
}

export function isDue(due: Due, now: Instant): boolean {
  return untilDue(due, now) < Math.floor(due.slack) + TIMER_RESOLUTION;
}

/** The delay and the slack of a timer for the next extension, if there is one, or for the end of the validity. */
export function timerFor(due: Due | undefined, remaining: number, now: Instant): [delay: number, slack: number] {
  const delay = due ? Math.min(remaining, untilDue(due, now)) : remaining;
  // The timer for the end of the validity fires a little early and is then armed again. Most locks are released before
  // that, and the slack lets their timers share a due time.
  const slack = due && delay < remaining ? due.slack : delay * TIMER_SLACK;
  return [Math.max(0, Math.floor(delay)), Math.floor(slack)];
}

/** Why a lock expired although no extension of it has failed. */
export function whyNotExtended(isExtended: boolean, ttl: number): string {
  return isExtended
    ? `this process was blocked or suspended, and did not extend it within its ttl of ${ttl} ms`
    : `it was not extended within its ttl of ${ttl} ms: pass \`extend: true\`, or a longer ttl`;
}

function untilDue({ since, after }: Due, now: Instant): number {
  return Math.floor(after) - elapsedBetween(since, now);
}
