import type { Clock } from './clock.js';
import { RedlockConfigError } from './errors.js';

/** Beyond this time, microseconds approach the largest safe integer. */
const LATEST_WALL_CLOCK = Date.UTC(2200, 0, 1);

/**
 * The wall clock of this process in microseconds since the epoch.
 * Protocol 9.4.
 *
 * @param purpose what it is needed for, for the message
 * @throws {RedlockConfigError} if it shows the year 2200 or later
 */
export function microsecondsOf(clock: Clock, purpose: string): number {
  const { wall } = clock.read();
  if (wall < LATEST_WALL_CLOCK) return Math.floor(wall * 1_000);
  const requirement = `must show a time before the year 2200 for ${purpose}: correct the clock of this machine`;
  throw new RedlockConfigError('wall clock', new Date(wall).toISOString(), requirement);
}
