/** A problem, or a fact that is good to know. */
export interface Finding {
  /** A `problem` needs a change; a `note` may describe what is intended. */
  readonly level: 'problem' | 'note';
  /** Address of the master that the finding is about; `undefined` if it is about all of them. */
  readonly master: string | undefined;
  readonly what: string;
  /** What to change. */
  readonly advice: string;
}

/** A finding without its master. */
export type Unplaced = Omit<Finding, 'master'>;

export function problem(what: string, advice: string): Unplaced {
  return { level: 'problem', what, advice };
}

export function note(what: string, advice: string): Unplaced {
  return { level: 'note', what, advice };
}
