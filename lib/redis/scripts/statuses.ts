/** Answer when no other token holds a key: the keys were set, refreshed, released, or are free. Protocol 4.6. */
export const FREE = -2;
/** Answer when a key is held and does not expire by itself. Both this number and {@link FREE} are those of PTTL. */
export const ENDLESS = -1;
/** Answer when the keys were set or released while other processes wait for one of them. */
export const FREE_WITH_WAITERS = -3;
/** Answer when the marker is not the one that the client knows. */
export const UNMARKED = -4;
/** Answer to an extension that had to set a key again. */
export const HEALED = -5;
/** Answer to the request for a fencing token, if another token holds a key, or none. */
export const NOT_THE_HOLDER = 0;
/** Answer to a request for the state that another holder has opened with a larger ballot. */
export const OUTBID = -6;
/** Answer to a request for a state whose entry has a value of another program. */
export const FOREIGN_ENTRY = -7;
/** Begins the answer to a request that takes one of several keys. The number of that key follows, counted from 0. */
export const PICKED = -8;
