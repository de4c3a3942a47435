/** Answer to a request when nobody else holds a key: the keys were taken, refreshed, given up, or are free. */
export const FREE = -2;
/** Answer when a key is held and will not expire by itself. Like PTTL, where both numbers come from. */
export const ENDLESS = -1;
/** Answer when the keys were taken or given up while other processes wait for one of them. */
export const FREE_AMONG_OTHERS = -3;
/** Answer when the marker is not the one that the client knows. */
export const UNMARKED = -4;
/** Answer to an extension that had to set a key again. */
export const HEALED = -5;
