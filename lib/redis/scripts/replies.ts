// The words of the scripts, each once. Scripts and parser name them by these constants.

// No other token holds a key: the keys were set, refreshed, released, or are free.
// A number, which a client decodes in half the time of a word.
// Protocol 4.6
export const FREE = 1;
// All answers are FREE. `from` of the marker follows if one of them passed the gate.
export const ALL_FREE = 'all free ';
// The keys were set or released while other processes wait for one of them.
export const FREE_WITH_WAITERS = 'free, awaited';
// Another token holds a key. Its remaining milliseconds follow, the number of waiters if that was asked, and its holder.
export const HELD = 'held';
// One of the keys to extend or to release was absent.
export const GONE = 'gone';
// The same, while processes wait for a key.
export const GONE_WITH_WAITERS = 'gone, awaited';
// The larger counter follows.
export const DRAWN = 'drawn';
// The number of the key that was taken follows, counted from 0, and `!` if processes wait.
export const PICKED = 'picked';
// Another token holds a key, or none.
export const NOT_THE_HOLDER = 'not the holder';
// The server does not vote yet. The milliseconds that are left follow.
// Protocol 8.2
export const QUARANTINED = 'quarantined';
// A later holder has claimed the state. Its number follows.
export const CLAIMED = 'claimed';
// The marker is not the one that the holder of the state knew.
export const OTHER_MARKER = 'other marker';
// The entry of the state has a value of another program.
export const FOREIGN_ENTRY = 'foreign entry';
