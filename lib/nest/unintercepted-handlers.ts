import 'reflect-metadata';
import { MetadataScanner } from '@nestjs/core';
import { RedlockConfigError } from '../core/errors.js';

/**
 * Marks the classes that `LockInterceptor` creates, and names them in error messages. A registered symbol, so that two copies of this package recognize
 * each other's classes.
 */
export const LOCK_INTERCEPTOR = Symbol.for('nestjs-redlock:lock-interceptor');

/** Metadata keys of methods that packages call without Nest's interceptors, each with the decorators that set it. */
const CALLED_DIRECTLY = [
  ['SCHEDULER_TYPE', '@Cron, @Interval or @Timeout'],
  ['EVENT_LISTENER_METADATA', '@OnEvent'],
  ['bull:module_queue_process', '@Process'],
  ['bullmq:worker_events_metadata', '@OnWorkerEvent'],
  ['bullmq:queue_events_metadata', '@OnQueueEvent'],
] as const;
/** Metadata key of a class whose method `process` BullMQ calls. */
const BULLMQ_PROCESSOR = 'bullmq:processor_metadata';

/** Metadata keys that do not mark a handler: those of the packages above, of injection, and of enhancers. */
const NO_HANDLER =
  /^(SCHEDULE|EVENT_LISTENER|bull|design:|self:|optional:|scope:|__(injectable|interceptors|guards|pipes|exceptionFilters)__)/;

/**
 * Refuses `LockInterceptor` where Nest would not run it.
 *
 * On a method, it is refused if a package calls the method directly. On a class, it may be meant for other methods: it
 * is refused only if the metadata rules out that anything else in the class is a handler.
 *
 * @throws {RedlockConfigError} for the first method that would run without its lock
 */
export function refuseUnintercepted(prototype: object): void {
  const owner: unknown = prototype.constructor;
  if (typeof owner !== 'function') return;
  const methods = new MetadataScanner().getAllMethodNames(prototype).map((name) => ({
    name,
    method: Reflect.get(prototype, name) as object,
  }));
  const isForClass = isLocked(owner) && [owner, ...methods.map(({ method }) => method)].every(canBeNoHandler);
  for (const { name, method } of methods) {
    const caller = directCallerOf(owner, name, method);
    if (caller === undefined || !(isForClass || isLocked(method))) continue;
    const where = isLocked(method) ? `${owner.name}.${name}` : `class ${owner.name}`;
    throw new RedlockConfigError(
      `LockInterceptor on ${where}`,
      `${owner.name}.${name}`,
      `cannot lock a method under ${caller}, for which Nest runs no interceptors: it would run without the lock. Write ` +
        '@WithLock(key, options) on the method instead',
    );
  }
}

/** Whether the interceptors of a class or a method include a `LockInterceptor`. */
function isLocked(target: object): boolean {
  const interceptors: unknown = Reflect.getMetadata('__interceptors__', target);
  return Array.isArray(interceptors) && interceptors.some(isLockInterceptor);
}

function isLockInterceptor(interceptor: unknown): boolean {
  const made = typeof interceptor === 'object' && interceptor !== null ? interceptor.constructor : interceptor;
  return typeof made === 'function' && LOCK_INTERCEPTOR in made;
}

function canBeNoHandler(target: object): boolean {
  return Reflect.getMetadataKeys(target).every((key) => typeof key === 'string' && NO_HANDLER.test(key));
}

/** The decorators because of which a package calls a method directly. */
function directCallerOf(owner: object, name: string, method: object): string | undefined {
  if (name === 'process' && Reflect.hasMetadata(BULLMQ_PROCESSOR, owner)) return '@Processor';
  return CALLED_DIRECTLY.find(([key]) => Reflect.hasMetadata(key, method))?.[1];
}
