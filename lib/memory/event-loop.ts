/** Kept from the start: a test that fakes timers must stop neither masters in memory nor the clock that it moves. */
export const { queueMicrotask, setImmediate } = globalThis;
