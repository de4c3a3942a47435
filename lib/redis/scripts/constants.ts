// No other token holds a key: the keys were set, refreshed, released, or are free.
// Protocol 4.6
export const FREE = -2;
// A key is held and does not expire by itself. Both this number and `FREE` are those of PTTL.
export const ENDLESS = -1;
// The keys were set or released while other processes wait for one of them.
export const FREE_WITH_WAITERS = -3;
// The marker is not the one that the client knows.
export const UNMARKED = -4;
// An extension had to set a key again.
export const EXTENDED_AFTER_HEAL = -5;
// Another token holds a key, or none.
export const NOT_THE_HOLDER = 0;
// Another holder has opened the state with a larger ballot.
export const OUTBID = -6;
// The entry of the state has a value of another program.
export const FOREIGN_ENTRY = -7;
// The number of the key that was taken follows, counted from 0.
export const PICKED = -8;

// In milliseconds after a waiter has joined its queue: waiters join again before that.
// Protocol 5.7
export const QUEUE_LIFE = 5_000;
// Milliseconds for which an announced ttl counts longer than the ttl itself: a bit longer than until its next
// announcement.
export const ANNOUNCED_FOR = 4_000;
// In a marker. Beyond it, the smallest are merged into the next larger one.
export const MAX_ANNOUNCED = 16;
// In milliseconds: a change of a marker that arrives later than this after the reading that it is based on is refused.
export const TIMELY = 2_000;
