import { Injectable } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { RedlockConfigError } from '../core/errors.js';
import { declaredMethods, provided, refuseDuplicates } from '../nest/declared-methods.js';
import { JOB_DECLARATIONS } from '../nest/lock-service.token.js';
import type { LockService } from '../nest/lock.service.js';
import type { JobDeclaration } from './locked-job.decorators.js';
import type { JobHandler } from './job-execution.js';
import { type JobSettings, resolveJob } from './job-settings.js';

export interface FoundJob {
  readonly declaration: JobDeclaration;
  readonly settings: JobSettings;
  readonly locks: LockService;
  readonly handler: JobHandler;
}

@Injectable()
export class JobExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly modules: ModuleRef,
  ) {}

  explore(): readonly FoundJob[] {
    const { discovery, modules } = this;
    const application = { discovery, modules, module: 'RedlockScheduleModule' };
    const found = declaredMethods<JobDeclaration>(JOB_DECLARATIONS, application).map(({ declaration, locks, call }) => {
      const handler = { where: declaration.where, call };
      return { declaration, settings: resolveJob(declaration, locks), locks, handler };
    });
    refuseDuplicates(
      'job',
      found.map(({ settings: { name }, declaration, locks }) => ({ name, declaration, locks })),
    );
    if (found[0]) this.requireScheduleModule(found[0].declaration);
    return found;
  }

  private requireScheduleModule({ where }: JobDeclaration): void {
    if (provided(this.modules, SchedulerRegistry) !== undefined) return;
    const requirement = 'needs ScheduleModule.forRoot() of @nestjs/schedule, whose options also turn jobs off';
    throw new RedlockConfigError(where, undefined, requirement);
  }
}
