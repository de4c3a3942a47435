/** Injection token of the jobs that every instance has. */
export const JOBS = Symbol('Jobs');
