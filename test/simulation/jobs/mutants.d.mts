export interface JobMutantResult {
  readonly name: string;
  /** The property that noticed the mutant; `undefined` if none did. */
  readonly property: string | undefined;
  readonly killer: number | undefined;
  readonly tried: number;
}

export interface JobMutantOptions {
  /** The mutant to run; all of them by default. */
  readonly name?: string | undefined;
  readonly workers: number;
  /** The first seed. */
  readonly seed: number;
  /** Largest number of schedules for each mutant. */
  readonly runs?: number;
}

/** Name, and the lines that replace those with these anchors. */
export declare const MUTANTS: readonly {
  readonly name: string;
  readonly lines: Readonly<Record<string, string>>;
}[];

export declare function runMutants(
  options: JobMutantOptions,
  print: (line: string) => void,
): Promise<readonly JobMutantResult[]>;
