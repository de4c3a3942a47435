import { elapsedBetween, type Instant } from './clock.js';
import type { Random } from './holder.js';

// As a share of the ttl.
// Protocol 6.1
const EXTEND_AFTER = 1 / 3;
// The most for a retry, as a share of the ttl: soon enough, without a hot loop.
const RETRY_AFTER = 1 / 10;
// A timer may fire early by this share of the period that it covers, so that timers of several locks coincide.
const TIMER_SLACK = 1 / 50;
// Timers have a resolution of one millisecond: a shorter remaining validity cannot be relied on.
export const TIMER_RESOLUTION = 1;

// When a lock is extended next: `after` milliseconds after `since`, or up to `slack` milliseconds earlier.
export interface Due {
  readonly since: Instant;
  readonly after: number;
  readonly slack: number;
}

export function nextDue(ttl: number, since: Instant): Due {
  return { since, after: ttl * EXTEND_AFTER, slack: ttl * TIMER_SLACK };
}

export function retryDue(ttl: number, since: Instant, random: Pick<Random, 'fraction'>): Due {
  const bound = ttl * RETRY_AFTER;
  return { since, after: bound * (1 + random.fraction()) * 0.5, slack: bound * TIMER_SLACK };
}

export function isDue(due: Due, now: Instant): boolean {
  return untilDue(due, now) < Math.floor(due.slack) + TIMER_RESOLUTION;
}

// For the next extension, if there is one, or for the end of the validity.
export function timerFor(due: Due | undefined, remaining: number, now: Instant): [delay: number, slack: number] {
  const delay = due ? Math.min(remaining, untilDue(due, now)) : remaining;
  // The timer for the end of the validity fires a little early and is then armed again. Most locks are released before
  // that, and the slack lets their timers share a due time.
  const slack = due && delay < remaining ? due.slack : delay * TIMER_SLACK;
  return [Math.max(0, Math.floor(delay)), Math.floor(slack)];
}

function untilDue({ since, after }: Due, now: Instant): number {
  return Math.floor(after) - elapsedBetween(since, now);
}
