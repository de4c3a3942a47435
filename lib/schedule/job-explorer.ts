import { Injectable } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { RedlockConfigError } from '../core/errors.js';
import { checkLockService, tokenFor } from '../nest/lock-service.token.js';
import type { LockService } from '../nest/lock.service.js';
import { type JobDeclaration, jobsOf } from './locked-job.decorators.js';
import type { JobHandler } from './job-execution.js';
import type { JobRun } from './job-locks.js';
import { type JobSettings, resolveJob } from './job-settings.js';

export interface FoundJob {
  readonly declaration: JobDeclaration;
  readonly settings: JobSettings;
  readonly locks: LockService;
  readonly handler: JobHandler;
}

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

@Injectable()
export class JobExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly modules: ModuleRef,
  ) {}

  explore(): readonly FoundJob[] {
    const found: FoundJob[] = [];
    const seen = new Set<unknown>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      const instance: unknown = wrapper.instance;
      if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
      seen.add(instance);
      const prototype = Object.getPrototypeOf(instance) as object | null;
      for (const declaration of prototype ? jobsOf(prototype) : []) {
        refuseManyInstances(declaration, wrapper);
        const job = this.resolve(declaration, instance);
        refuseDuplicate(job, found);
        found.push(job);
      }
    }
    if (found[0]) this.requireScheduleModule(found[0].declaration);
    return found;
  }

  private resolve(declaration: JobDeclaration, instance: object): FoundJob {
    const { where, property } = declaration;
    const locks = this.lockServiceOf(declaration);
    const call = (run: JobRun): unknown => {
      const method = Reflect.get(instance, property) as (run: JobRun) => unknown;
      return Reflect.apply(method, instance, [run]);
    };
    return { declaration, settings: resolveJob(declaration, locks), locks, handler: { where, call } };
  }

  private lockServiceOf({ where, options }: JobDeclaration): LockService {
    const given = (options as { readonly service?: string } | undefined) ?? {};
    const locks = this.find(tokenFor(where, given));
    if (locks === undefined) {
      const { service } = given;
      const name = service === undefined ? '...' : `{ name: '${service}', ... }`;
      const requirement = `needs a lock service: import RedlockModule.forRoot(${name}) beside RedlockScheduleModule`;
      throw new RedlockConfigError(`${where}: service`, service, requirement);
    }
    checkLockService(where, locks);
    return locks;
  }

  private requireScheduleModule({ where }: JobDeclaration): void {
    if (this.find(SchedulerRegistry) !== undefined) return;
    const requirement = 'needs ScheduleModule.forRoot() of @nestjs/schedule, whose options also turn jobs off';
    throw new RedlockConfigError(where, undefined, requirement);
  }

  private find(token: symbol | typeof SchedulerRegistry): unknown {
    try {
      return this.modules.get<unknown>(token, { strict: false });
    } catch {
      return undefined;
    }
  }
}

function refuseManyInstances({ where }: JobDeclaration, wrapper: Wrapper): void {
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return;
  const requirement = 'needs a singleton: remove the scope of the class, and of what is injected into it';
  throw new RedlockConfigError(where, wrapper.name, requirement);
}

function refuseDuplicate(job: FoundJob, earlier: readonly FoundJob[]): void {
  const other = earlier.find((each) => each.settings.name === job.settings.name && shareRecords(each.locks, job.locks));
  if (!other) return;
  const [one, another] = [other.declaration.where, job.declaration.where];
  const advice = one === another ? ' (is its class a provider of several modules, or extended by several?)' : '';
  const requirement = `must be different for each job on the same masters, and ${one} has the same${advice}`;
  throw new RedlockConfigError(`${another}: name`, job.settings.name, requirement);
}

function shareRecords(one: LockService, other: LockService): boolean {
  if (one === other) return true;
  const [a, b] = [one.environment, other.environment];
  return a.settings.keyPrefix === b.settings.keyPrefix && a.servers.some((server) => b.servers.includes(server));
}
