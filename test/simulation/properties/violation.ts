/** The guarantees of the library. */
export type Property =
  | 'mutual exclusion'
  | 'no work starts on an ended lock'
  | 'a believer has a quorum'
  | 'a loss is reported in time'
  | 'a step of a wall clock costs no lock'
  | 'fencing tokens'
  | 'the state of a lock'
  | 'nothing is left'
  | 'progress'
  | 'a waiter is notified of a release'
  | 'a healthy client keeps its locks'
  | 'new masters vote within 3 s'
  | 'a quarantine ends'
  | 'a master with a right clock is not accused'
  | 'a standstill is subtracted once'
  | 'a client whose clocks run does not stand still'
  | 'a shared key lives as long as its holders'
  | 'first come, first served'
  | 'no two calls of one process wait for each other'
  | 'nothing outlives its lock'
  | 'a wait is as long as its budget'
  | 'blamed time is waited time'
  | 'no unexpected error';

/** A guarantee that was broken. */
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
