/** What scheduled jobs promise. Each is stated where it is checked: see `ledger.ts` and `punctuality.ts`. */
export type JobProperty =
  | 'a finished tick never starts again'
  | 'a crashed tick runs again, or never'
  | 'one instance runs a job at a time'
  | 'nothing remembered goes back'
  | 'no tick is missed'
  | 'the attempt bounds the starts'
  | 'no tick starts early'
  | 'a new job runs nothing old'
  | 'a tick is its nominal time'
  | 'progress'
  | 'no unexpected error';

/** A promise that was broken. */
export class JobViolation extends Error {
  constructor(
    readonly property: JobProperty,
    /** True time, in milliseconds. */
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}
