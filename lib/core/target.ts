import { showNames } from './display.js';

/** A lock, or one permit. */
export interface Target {
  readonly resource: string;
  /** The slot of the permit; absent for a lock. */
  readonly slot?: number | undefined;
}

/** For people: `"stripe" #3` is a permit. */
export function titleOf({ resource, slot }: Target): string {
  return `${showNames([resource])}${slot === undefined ? '' : ` #${slot}`}`;
}
