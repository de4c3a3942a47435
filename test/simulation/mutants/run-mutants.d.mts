import type { Mutant } from './mutants.mjs';

export interface MutantResult extends Mutant {
  /** The property that detected the mutant, what it said and at which seed; `undefined` if none did. */
  readonly property?: string;
  readonly message?: string;
  readonly seed?: number;
}

interface Simulation {
  readonly mutants: readonly Mutant[];
}

export declare const LOCKS: Simulation;
export declare const JOBS: Simulation;

export declare function runMutants(
  simulation: Simulation,
  options: { readonly name: string; readonly workers: number; readonly seed: number },
  print: (line: string) => void,
): Promise<readonly MutantResult[]>;
