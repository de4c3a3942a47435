export interface MutantResult {
  readonly name: string;
  /** Whether the fault is in a script, and the model of the script gets the same one. */
  readonly isInModel: boolean;
  /** The property that detected the mutant; `undefined` if none did. */
  readonly property: string | undefined;
  /** What it said. */
  readonly message: string | undefined;
  readonly killer: number | undefined;
  readonly tried: number;
  readonly seconds: number;
}

export interface MutantOptions {
  /** The mutant to run; all of them by default. */
  readonly name?: string | undefined;
  readonly workers: number;
  /** The first seed. */
  readonly seed: number;
  /** Largest number of schedules for each mutant. */
  readonly runs?: number;
}

export declare function runMutants(
  options: MutantOptions,
  print: (line: string) => void,
): Promise<readonly MutantResult[]>;
