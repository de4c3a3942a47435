/** Bounds of the delay between two attempts to connect, in milliseconds. */
const FIRST_RETRY = 50;
const LAST_RETRY = 500;
/** A peer that hangs does not close its side: a closed socket is destroyed after this many milliseconds. */
const DISCONNECT_WITHIN = 100;
/** Interval in milliseconds at which a server that is loading its data is asked whether it has finished. */
const LOADING_RETRY = 500;

/**
 * Milliseconds until the next attempt to connect: growing, bounded, and randomized so that clients do not reconnect all
 * at once.
 */
export function backoff(attempt: number): number {
  const delay = Math.min(FIRST_RETRY * 2 ** (attempt - 1), LAST_RETRY);
  return Math.ceil(delay * (0.5 + Math.random()));
}

/**
 * The settings that locks need on their connections, whatever the user's settings are.
 *
 * Above all, a command is sent at once or not at all, and never twice: a command that is sent later could acquire a
 * lock whose caller no longer waits.
 * Protocol 4.1.
 */
export const OWN_SETTINGS = Object.freeze({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // Commands in flight fail when the connection breaks, instead of staying pending.
  maxRetriesPerRequest: 0,
  // The algorithm enforces the time limits.
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  enableReadyCheck: true,
  maxLoadingRetryTime: LOADING_RETRY,
  enableAutoPipelining: false,
  // Key names already contain the prefix.
  keyPrefix: '',
  readOnly: false,
  retryStrategy: backoff,
  reconnectOnError: null,
  disconnectTimeout: DISCONNECT_WITHIN,
  autoResubscribe: false,
  monitor: false,
  scripts: undefined,
  stringNumbers: false,
  replyMapping: 'legacy' as const,
  showFriendlyErrorStack: false,
});
