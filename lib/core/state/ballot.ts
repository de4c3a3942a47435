/** Identifies one holder among all that open the state of a resource, and orders them. */
export interface Ballot {
  /** At least the microseconds of the holder's wall clock, and larger than every number that it has seen. */
  readonly number: number;
  /** Random, new for each lock: no two holders have the same ballot. */
  readonly id: string;
}

/** Identifies one write of one holder. */
export interface Version extends Ballot {
  /** Counts the writes of the holder, from 0. */
  readonly sequence: number;
}

/** Negative, zero or positive, as in a comparison for sorting. Protocol 10.1. */
export function compareBallots(one: Ballot, other: Ballot): number {
  if (one.number !== other.number) return one.number - other.number; // @mutant ballots-compared-by-id
  return one.id < other.id ? -1 : Number(one.id > other.id);
}

/** Like {@link compareBallots}. */
export function compareVersions(one: Version, other: Version): number {
  return compareBallots(one, other) || one.sequence - other.sequence;
}
