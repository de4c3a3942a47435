export interface MutantResult {
  readonly name: string;
  /** What noticed it; `undefined` if nothing did. */
  readonly property: string | undefined;
  readonly killer: number | undefined;
  readonly tried: number;
  readonly seconds: number;
}

export interface MutantOptions {
  /** All of them by default. */
  readonly name?: string | undefined;
  readonly workers: number;
  /** The first one. */
  readonly seed: number;
  /** Most schedules for each. */
  readonly runs?: number;
}

export declare function runMutants(
  options: MutantOptions,
  print: (line: string) => void,
): Promise<readonly MutantResult[]>;
