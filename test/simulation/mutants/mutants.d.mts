export interface Mutant {
  readonly name: string;
  /** Path in the library, from the root of the repository. */
  readonly file: string;
  /** Pairs of the string to replace and its replacement. */
  readonly changes: readonly string[];
  /** Whether the fault is in a script, and so also in its model. */
  readonly isInModel: boolean;
}

export declare const MUTANTS: readonly Mutant[];
