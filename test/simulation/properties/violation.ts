/** What is promised. */
export type Property =
  | 'mutual exclusion'
  | 'a believer has a quorum'
  | 'a loss is told in time'
  | 'fencing tokens'
  | 'nothing is left'
  | 'progress'
  | 'first come, first served'
  | 'nothing outlives its lock'
  | 'a wait is as long as its budget'
  | 'no error nobody expects';

/** A promise that was not kept. */
export class Violation extends Error {
  constructor(
    readonly property: Property,
    /** True time, in milliseconds. */
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}
