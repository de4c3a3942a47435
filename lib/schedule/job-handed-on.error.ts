/** The application is shutting down: the reason of `JobRun.signal`. Another instance runs the tick again. */
export class JobHandedOnError extends Error {
  /** A stable code for programs. */
  readonly code = 'JOB_HANDED_ON';

  constructor() {
    super('the application is shutting down: a job that ends with an error now is run again by another instance');
    this.name = JobHandedOnError.name;
  }
}
