import 'reflect-metadata';
import type { LockedMethodOptions } from './lock-options.js';

export interface LockDeclaration {
  // The decorator, the class and the method, for messages.
  readonly method: string;
  readonly options: LockedMethodOptions;
  // Empty if it depends on the arguments.
  readonly resources: readonly string[];
  readonly target: object;
  readonly property: string | symbol;
  // Asked at boot, when all decorators have run.
  readonly isInTransaction: () => boolean;
}

const DECLARATIONS = Symbol.for('nestjs-redlock:declarations');

export function declare(target: object, declaration: LockDeclaration): void {
  Reflect.defineMetadata(DECLARATIONS, [...declarationsOf(target), declaration], target);
}

// Of the classes that it extends, too.
export function declarationsOf(prototype: object): readonly LockDeclaration[] {
  return (Reflect.getMetadata(DECLARATIONS, prototype) as LockDeclaration[] | undefined) ?? [];
}

// The first object of the prototype chain that has the property itself.
export function ownerOf(prototype: object, property: string | symbol): object | undefined {
  let owner: object | null = prototype;
  while (owner !== null && !Object.hasOwn(owner, property)) owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? undefined;
}

// Not by reading the property, which may be an accessor.
export function methodOf(prototype: object, property: string | symbol): object | undefined {
  const owner = ownerOf(prototype, property);
  const value: unknown = owner && Object.getOwnPropertyDescriptor(owner, property)?.value;
  return typeof value === 'function' ? value : undefined;
}

function callsOverridden(method: object, property: string | symbol): boolean {
  const source = Function.prototype.toString.call(method);
  if (typeof property === 'symbol') return source.includes('super[');
  const [, ...calls] = source.split(`super.${property}`);
  return calls.some((rest) => !/^[\w$]/.test(rest));
}

// Whether the method of this object calls that of `target`, which it overrides, maybe through others between them.
function reaches(target: object, owner: object, property: string | symbol): boolean {
  if (owner === target) return true;
  const method = methodOf(owner, property);
  const above = ownerOf(Object.getPrototypeOf(owner) as object, property);
  return Boolean(method && above && callsOverridden(method, property) && reaches(target, above, property));
}

interface Override {
  readonly declaration: LockDeclaration;
  // Of the class and the method, for messages.
  readonly name: string;
}

// In an object, a bound function and a mock may call the method, and so may what the constructor of its own class assigns. A field
// of a class that extends that one is a method of its own.
function mayWrap(owner: object, { target, property }: LockDeclaration): boolean {
  if (Object.hasOwn(owner, 'constructor')) return false;
  const method = methodOf(owner, property);
  const source = method && Function.prototype.toString.call(method);
  const isField = method && !Object.hasOwn(method, 'prototype') && !source?.includes('[native code]');
  return !isField || Object.getPrototypeOf(owner) === target;
}

// The methods that run without the lock that a class which they extend declares. Of a prototype, or of an object.
export function overridesOf(prototype: object): readonly Override[] {
  const declarations = declarationsOf(prototype);
  const decided = new Set<string | symbol>();
  return [...declarations].reverse().flatMap((declaration) => {
    const { target, property } = declaration;
    const owner = ownerOf(prototype, property);
    if (decided.has(property) || owner === undefined || owner === target) return [];
    decided.add(property);
    if (declarations.some((other) => other.target === owner && other.property === property)) return [];
    if (mayWrap(owner, declaration) || reaches(target, owner, property)) return [];
    return { declaration, name: `${owner.constructor.name || 'a class without a name'}.${String(property)}` };
  });
}
