/**
 * A generation of a master's data: it begins when the data is new or may have been lost, with a name and that moment.
 * Protocol 10.1.
 */
export function generationFrom(name: string, began: number): string {
  return `${name}@${began}`;
}

/** When a generation began, by the clock of the master in milliseconds; `undefined` if it is not known. */
export function beginningOf(generation: string): number | undefined {
  const [, began] = /@(\d+)$/.exec(generation) ?? [];
  return began === undefined ? undefined : Number(began);
}
