import { type Model } from './checker.js';

export interface Configuration {
  readonly name: string;
  /** Whether `npm run test:all` explores it, too. */
  readonly quick: boolean;
  readonly model: () => Model;
}

/** A rule that is left out, or that could be read in another way: the search must find how this breaks a promise. */
export interface Weakened extends Configuration {
  /** The counter-example in one line. `npm run model -- --trace <name>` prints every step. */
  readonly story: string;
}

export interface Section {
  readonly title: string;
  readonly holds: readonly Configuration[];
  readonly breaks: readonly Weakened[];
}

/** Configurations of one model by name, each as what it changes in a base. */
export function configurationsOf<Options extends object>(
  create: (options: Options) => Model,
  whereItHolds: Partial<Options> = {},
) {
  type Base = Options & { readonly quick?: boolean };
  type Weakening = { readonly story: string; readonly without?: readonly string[] };
  return {
    holds: (base: Base, named: Readonly<Record<string, Partial<Base>>>): Configuration[] =>
      Object.entries(named).map(([name, changes]) => {
        const { quick = false, ...options } = { ...base, ...changes, ...whereItHolds };
        return { name, quick, model: () => create(options as unknown as Options) };
      }),
    /** The name is the rule that is left out, unless another option is what breaks the promise. */
    breaks: (
      base: Base,
      named: Readonly<Record<string, string | (Partial<Base> & { readonly story: string })>>,
    ): Weakened[] =>
      Object.entries(named).map(([name, changes]) => {
        const all = { ...base, ...(typeof changes === 'string' ? { story: changes } : changes) };
        const { quick = true, story, without = [], ...options }: Base & Weakening = all;
        const weakened = { ...options, without: [...without, name] };
        return { name, story, quick, model: () => create(weakened as unknown as Options) };
      }),
  };
}
