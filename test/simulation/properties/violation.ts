/** The guarantees of the library, and those of scheduled jobs: each is stated where it is checked. */
export type Property =
  | 'mutual exclusion'
  | 'no work starts on an ended lock'
  | 'a believer has a quorum'
  | 'a loss is reported in time'
  | 'a holder is told of another one'
  | 'fencing tokens'
  | 'the state of a lock'
  | 'nothing is left'
  | 'progress'
  | 'a waiter is notified of a release'
  | 'no waiter is passed over for ever'
  | 'a healthy client keeps its locks'
  | 'no master votes early'
  | 'the marker of a run is never changed'
  | 'a quarantine ends'
  | 'a shared key lives as long as its holders'
  | 'first come, first served'
  | 'no two calls of one process wait for each other'
  | 'nothing outlives its lock'
  | 'a wait is as long as its budget'
  | 'no call fails for a pause of its process'
  | 'no unexpected error'
  | 'a finished tick never starts again'
  | 'a crashed tick runs again, or never'
  | 'one instance runs a job at a time'
  | 'nothing remembered goes back'
  | 'no tick is missed'
  | 'the attempt bounds the starts'
  | 'no tick starts early'
  | 'a new job runs nothing old'
  | 'a tick is its nominal time';

export class Violation extends Error {
  constructor(
    readonly property: Property,
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}
