/** The name whose permits the actors take. */
export const PERMITS_OF = 'p';
export const PERMITS = 3;

/** The checks treat each permit as a key, because it has one holder at a time, whose tokens order the holders of it alone. */
export function keyOfPermit(slot: number | undefined): string {
  return `${PERMITS_OF}#${slot}`;
}
