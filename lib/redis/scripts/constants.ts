// A key is held and does not expire by itself. The number is that of PTTL.
export const ENDLESS = -1;

// In microseconds: the beginning of the year 2200. Larger numbers are near those that a client cannot represent.
// Protocol 9.4
export const LATEST_CLOCK = 7_258_118_400_000_000;

// In milliseconds after a waiter has joined its queue: waiters join again before that.
// Protocol 5.7
export const QUEUE_LIFE = 5_000;
