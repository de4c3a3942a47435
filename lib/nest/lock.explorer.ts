import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { RedlockConfigError } from '../core/errors.js';
import { type Wrapper, refuseJobsWithoutModule, refuseLateJobs } from './job-places.js';
import { checkOnLocked } from './lock-options.js';
import { checkLockService, getLockServiceToken } from './lock-service.token.js';
import type { LockService } from './lock.service.js';
import { shortestPeriodOf } from './schedule-period.js';
import { refuseUnintercepted } from './unintercepted-handlers.js';
import { declarationsOf } from './with-lock.decorator.js';

/** Injection token: the name of the lock service that an explorer serves. */
export const SERVICE_NAME = Symbol.for('nestjs-redlock:service-name');
/** Injection token: the lock service that an explorer serves. */
export const LOCK_SERVICE = Symbol('nestjs-redlock:lock-service');


/**
 * Objects to which an explorer handed a lock service: an application that boots later with one of them replaces that
 * service by its own.
 */
const handedOver = new WeakSet<object>();

/**
 * Examines all providers and controllers at boot: checks the options of each `@WithLock`, hands the lock service to
 * objects that Nest did not build from a class and therefore could not inject into, and refuses interceptors that would
 * never run.
 */
@Injectable()
export class LockExplorer {
  private readonly host: symbol;
  private readonly checked = new Set<object>();

  constructor(
    private readonly discovery: DiscoveryService,
    @Inject(LOCK_SERVICE) private readonly locks: LockService,
    @Inject(SERVICE_NAME) private readonly name: string | null,
  ) {
    this.host = getLockServiceToken(name ?? undefined);
  }

  /** @throws {RedlockConfigError} for the first invalid option */
  explore(): void {
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    this.refuseTwin(wrappers);
    for (const wrapper of wrappers) {
      refuseJobsWithoutModule(wrapper, wrappers);
      if (wrapper.isFactory) {
        this.handOverLater(wrapper);
        for (const made of wrapper.getStaticTransientInstances()) {
          refuseLateJobs(wrapper, made?.instance);
          this.handOver(made?.instance);
        }
      } else if (wrapper.metatype) {
        this.check((wrapper.metatype as { prototype?: object }).prototype);
      }
      this.handOver(wrapper.instance);
    }
  }

  /** With two services of one name, the service of an object that Nest did not build would be ambiguous. */
  private refuseTwin(wrappers: readonly Wrapper[]): void {
    const services = wrappers.filter(({ token }) => token === this.host).map(({ instance }) => instance as unknown);
    if (new Set(services).size < 2) return;
    const requirement =
      'must be different for each lock service of one application: give each RedlockModule.forRoot() another name, or ' +
      'import the result of a single one';
    throw new RedlockConfigError('name', this.name ?? undefined, requirement);
  }

  private check(prototype: object | null | undefined): void {
    if (!prototype || this.checked.has(prototype)) return;
    this.checked.add(prototype);
    refuseUnintercepted(prototype);
    for (const { method, options, resources } of declarationsOf(prototype)) {
      if (!this.isMine(options.service)) continue;
      checkLockService(method, this.locks);
      this.locks.check(method, options);
      this.locks.checkNames(method, resources, options);
      const locked: unknown = Reflect.get(prototype, method.slice(method.lastIndexOf('.') + 1));
      if (typeof locked === 'function') this.locks.checkPeriod(method, options, shortestPeriodOf(locked));
      checkOnLocked(method, options.onLocked);
    }
  }

  private handOver(instance: unknown): void {
    if (typeof instance !== 'object' || instance === null) return;
    const prototype = Object.getPrototypeOf(instance) as object | null;
    this.check(prototype);
    if (!prototype || !declarationsOf(prototype).some(({ options }) => this.isMine(options.service))) return;
    const injected = Reflect.get(instance, this.host) !== undefined && !handedOver.has(instance);
    if (injected) return;
    Reflect.set(instance, this.host, this.locks);
    handedOver.add(instance);
  }

  /** Nest creates request-scoped and transient providers after boot, too. */
  private handOverLater(wrapper: Wrapper): void {
    const make = wrapper.metatype as (...args: unknown[]) => unknown;
    wrapper.metatype = async (...args: unknown[]) => {
      const instance = await make(...args);
      refuseLateJobs(wrapper, instance);
      this.handOver(instance);
      return instance;
    };
  }

  private isMine(service: string | undefined): boolean {
    return (service ?? null) === this.name;
  }
}
