export interface Mutant {
  readonly name: string;
  /** Of the library, from the root of the repository. */
  readonly file: string;
  /** What is replaced, and by what, in turn. */
  readonly changes: readonly string[];
  /** Whether the fault is in a script, and so in its model. */
  readonly isInModel: boolean;
}

export declare const MUTANTS: readonly Mutant[];
