/** Milliseconds of the machine's monotonic clock, which is the same for all of its processes. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
