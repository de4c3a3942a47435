/**
 * The bounds of what this library promises beside its peers, each in this place only. With every safety feature on, on
 * pinned processors, as ratios unless a unit is given.
 */
export const GOALS = {
  /** N = 5, 64 at a time: the most client CPU per lock, to `redlock5`. */
  clientCpu: 0.22,
  /** N = 5, 64 at a time: the most CPU of all servers per lock, to `redlock5`. */
  serverCpu: 0.45,
  /** Each N, 64 at a time: the fewest locks per second, to the fastest peer. */
  rate: 1.6,
  /** Each N, one at a time: the longest median of acquire and release, to the fastest peer. */
  p50: 1.1,
  /** As `p50`, of the 99th percentile. */
  p99: 1.3,
  /** One master, 64 at a time: the most client CPU of a call by `@WithLock`, to `acquire` and `release`. */
  decorator: 1.2,
  /** N = 5, 4 processes x 2 waiters: the fewest sections per second, to `redlock5` with its defaults. */
  sectionRate: 1,
  /** The longest wait meanwhile, in milliseconds. */
  longestWait: 100,
  /** The most memory of a held lock that is extended, in KiB. */
  heldKiB: 0.8,
};
