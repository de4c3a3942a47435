import { type Model } from './checker.js';

/** One search. If it reaches `limit` states, it ends and proves nothing. */
export interface Configuration {
  readonly name: string;
  readonly limit: number;
  /** Whether `npm run test:all` explores it, too. */
  readonly quick?: boolean;
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

export type Story = { readonly story: string; readonly slow?: boolean };

export const LIMIT = 4_000_000;
