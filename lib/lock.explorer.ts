import { Inject, Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { RedlockConfigError } from './core/errors.js';
import { checkLockService, getLockServiceToken } from './lock-service.token.js';
import type { LockService } from './lock.service.js';
import { refuseUnintercepted } from './unintercepted-handlers.js';
import { declarationsOf } from './with-lock.decorator.js';

/** Name of the lock service that an explorer works for. */
export const SERVICE_NAME = Symbol('nestjs-redlock:service-name');
/** The lock service that an explorer works for. */
export const LOCK_SERVICE = Symbol('nestjs-redlock:lock-service');

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Objects that an explorer gave a lock service: the application that boots next with one of them gives its own. */
const handedOver = new WeakSet<object>();

/**
 * Looks at all objects at boot: checks what their `@WithLock` ask for, hands the lock service to those that Nest did not
 * build from a class and therefore could not inject, and refuses interceptors that would never run.
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

  /** @throws {RedlockConfigError} for the first option that cannot work */
  explore(): void {
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    this.refuseTwin(wrappers);
    for (const wrapper of wrappers) {
      if (wrapper.isFactory) {
        this.handOverLater(wrapper);
        for (const made of wrapper.getStaticTransientInstances()) this.handOver(made?.instance);
      } else if (wrapper.metatype) {
        this.check((wrapper.metatype as { prototype?: object }).prototype);
      }
      this.handOver(wrapper.instance);
    }
  }

  /** Which of two would a host get that Nest did not build? */
  private refuseTwin(wrappers: readonly Wrapper[]): void {
    if (wrappers.filter(({ token }) => token === this.host).length < 2) return;
    const requirement =
      'must tell the lock services of one application apart: give each RedlockModule.forRoot() another name, or ' +
      'import the result of a single one';
    throw new RedlockConfigError('name', this.name ?? undefined, requirement);
  }

  private check(prototype: object | null | undefined): void {
    if (!prototype || this.checked.has(prototype)) return;
    this.checked.add(prototype);
    refuseUnintercepted(prototype);
    for (const { method, ttl, options } of declarationsOf(prototype)) {
      if (!this.isMine(options.service)) continue;
      checkLockService(method, this.locks);
      this.locks.check(method, ttl, options);
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

  /** Request-scoped and transient providers are made after boot, too. */
  private handOverLater(wrapper: Wrapper): void {
    const make = wrapper.metatype as (...args: unknown[]) => unknown;
    wrapper.metatype = async (...args: unknown[]) => {
      const instance = await make(...args);
      this.handOver(instance);
      return instance;
    };
  }

  private isMine(service: string | undefined): boolean {
    return (service ?? null) === this.name;
  }
}
