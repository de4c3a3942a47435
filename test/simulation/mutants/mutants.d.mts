export interface Mutant {
  readonly name: string;
  /** The lines that replace those with these anchors. */
  readonly lines: Readonly<Record<string, string>>;
  /** Whether the fault is in a script, and so in its model. */
  readonly isInModel: boolean;
  /** Where the search for a schedule that notices it begins. */
  readonly firstSeed: number;
}

export declare const MUTANTS: readonly Mutant[];
