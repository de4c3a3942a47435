/** Bounds of the delay between two attempts to connect, in milliseconds. */
const FIRST_RETRY = 50;
const LAST_RETRY = 500;
/** A peer that hangs does not close its side: a closed socket is destroyed after so many milliseconds. */
const DISCONNECT_WITHIN = 100;
/** How often a server that loads its data is asked whether it has finished, in milliseconds. */
const LOADING_RETRY = 500;

/** Milliseconds until the next attempt to connect: growing, bounded, and spread so that clients do not come at once. */
export function backoff(attempt: number): number {
  const delay = Math.min(FIRST_RETRY * 2 ** (attempt - 1), LAST_RETRY);
  return Math.ceil(delay * (0.5 + Math.random()));
}

/**
 * What a lock needs of its connection, whatever the user's settings say.
 *
 * Above all, a command is sent at once or not at all, and never twice: what is sent later could take a lock that
 * nobody waits for any more.
 */
export const OWN_SETTINGS = Object.freeze({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  // Commands under way fail when the connection breaks, instead of never.
  maxRetriesPerRequest: 0,
  // Time limits are the algorithm's business.
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  enableReadyCheck: true,
  maxLoadingRetryTime: LOADING_RETRY,
  enableAutoPipelining: false,
  // Prefixes are part of the key names already.
  keyPrefix: '',
  readOnly: false,
  // Of a group that is watched by sentinels, only the primary may vote.
  role: 'master' as const,
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
