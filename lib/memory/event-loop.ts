/** Captured at load time: fake timers in a test must stop neither masters in memory nor the clock that it advances. */
export const { queueMicrotask, setImmediate } = globalThis;
