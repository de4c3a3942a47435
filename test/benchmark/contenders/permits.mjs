/** Permits of the one name that all callers want, for every contender. */
export const PERMITS = 10;

/**
 * The largest number of holders that a counter of `PERMITS` on each master admits: each holder needs a grant of a quorum
 * of the masters, and any quorum will do.
 */
export function admittedByCounters(masters) {
  const quorum = Math.floor(masters / 2) + 1;
  return Math.floor((masters * PERMITS) / quorum);
}
