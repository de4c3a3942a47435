/** Injection token of this instance's `Config`. */
export const CONFIG = Symbol('Config');
