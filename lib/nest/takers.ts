type Check = (prototype: object) => void;

interface Takers {
  readonly prototypes: Set<object>;
  readonly checks: Check[];
}

const takers = new WeakMap<object, Takers>();

function takersOf(service: object): Takers {
  const known = takers.get(service) ?? { prototypes: new Set(), checks: [] };
  takers.set(service, known);
  return known;
}

// Called for each object to which Nest gives the service, whatever has it made: a module that is loaded late, `moduleRef.create`.
export function noteTaker(service: unknown, taker: object): void {
  const prototype = Object.getPrototypeOf(taker) as object | null;
  if (typeof service !== 'object' || service === null || prototype === null) return;
  const { prototypes, checks } = takersOf(service);
  if (prototypes.has(prototype)) return;
  for (const check of checks) check(prototype);
  prototypes.add(prototype);
}

// Those that were there before, and all later ones. What the check throws fails what makes the object.
export function checkTakers(service: object, check: Check): void {
  const { prototypes, checks } = takersOf(service);
  for (const prototype of prototypes) check(prototype);
  checks.push(check);
}
