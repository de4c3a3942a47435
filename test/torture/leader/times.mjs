// In milliseconds.
export const TTL = 1_000;
export const MAX_TTL = 2_000;
export const SAMPLE_EVERY = 2;
export const WRITE_EVERY = 10;
