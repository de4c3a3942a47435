import 'reflect-metadata';
import { isObservable } from 'rxjs';
import type { Duration } from '../core/settings/duration.js';
import { RedlockConfigError } from '../core/errors.js';
import { JOB_DECLARATIONS, JOBS } from '../nest/job.tokens.js';
import { injectProperty, methodOf, misuse, nameOf } from '../nest/lockable-method.js';
import type { JobRun } from './job-run.interface.js';
import type { LockedCronOptions, LockedJobOptions } from './locked-job.options.js';

/** What a job can be: a method that returns a promise. */
export type JobMethod = (run: JobRun) => PromiseLike<unknown>;

/** The decorator that `@LockedCron` and `@LockedInterval` return. */
export type JobDecorator = <Method extends JobMethod>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** The arguments of one decorator, which are checked at boot. */
export type JobDeclaration = {
  /** The decorator, the class and the method, for messages. */
  readonly where: string;
  readonly property: string | symbol;
} & (
  | { readonly kind: 'cron'; readonly schedule: string; readonly options: LockedCronOptions }
  | { readonly kind: 'interval'; readonly schedule: Duration; readonly options: LockedJobOptions }
);

type DeclarationOf<Kind> = Omit<Extract<JobDeclaration, { readonly kind: Kind }>, 'where' | 'property'>;

/** Declares a method as a job, which the explorer finds. */
export function declareJob(
  decorator: string,
  declaration: DeclarationOf<'cron'> | DeclarationOf<'interval'>,
): JobDecorator {
  return (target, property, descriptor): void => {
    if ((property as unknown) === undefined) throw misuse(`${decorator} on ${nameOf(target)}`, 'a class');
    const where = `${decorator} on ${nameOf(target)}.${String(property)}`;
    methodOf(where, target, descriptor);
    refuseObservableType(where, target, property);
    Reflect.defineMetadata(JOB_DECLARATIONS, [...ownJobsOf(target), { ...declaration, where, property }], target);
    // Without the module, no job would ever run, and no error would show it.
    injectProperty(target, JOBS);
  };
}

/** All jobs of a class and the classes that it extends. A method that is decorated again is a job of its own class only. */
export function jobsOf(prototype: object): readonly JobDeclaration[] {
  const base = Object.getPrototypeOf(prototype) as object | null;
  const own = ownJobsOf(prototype);
  const redeclared = new Set(own.map(({ property }) => property));
  return [...(base ? jobsOf(base) : []).filter(({ property }) => !redeclared.has(property)), ...own];
}

function ownJobsOf(prototype: object): readonly JobDeclaration[] {
  return (Reflect.getOwnMetadata(JOB_DECLARATIONS, prototype) as JobDeclaration[] | undefined) ?? [];
}

/** The compiler emits the type only if `emitDecoratorMetadata` is on; a run checks the value, too. */
function refuseObservableType(where: string, target: object, property: string | symbol): void {
  const type: unknown = Reflect.getMetadata('design:returntype', target, property);
  if (typeof type !== 'function' || !isObservable(type.prototype)) return;
  throw new RedlockConfigError(where, 'an Observable', 'needs a method that returns a promise');
}
