import type { DiscoveryService } from '@nestjs/core';
import { RedlockConfigError } from '../core/errors.js';
import { JOB_DECLARATIONS, JOBS } from './job.tokens.js';

export type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * Refuses jobs in objects that Nest did not build from a class, and so could not inject into, if nothing would run them.
 *
 * @throws {RedlockConfigError}
 */
export function refuseJobsWithoutModule(wrapper: Wrapper, wrappers: readonly Wrapper[]): void {
  if (!hasJobs(wrapper.instance) || wrappers.some(({ token }) => token === JOBS)) return;
  const requirement = 'has jobs, and RedlockScheduleModule, which runs them, is not imported beside RedlockModule';
  throw new RedlockConfigError('provider', wrapper.name, requirement);
}

/** Refuses jobs of an object that a factory made after boot. @throws {RedlockConfigError} */
export function refuseLateJobs(wrapper: Wrapper, instance: unknown): void {
  if (!hasJobs(instance)) return;
  const requirement =
    'has jobs, and must be a singleton: remove the scope of its factory, and of what is injected into it';
  throw new RedlockConfigError('provider', wrapper.name, requirement);
}

function hasJobs(instance: unknown): boolean {
  return typeof instance === 'object' && instance !== null && Reflect.hasMetadata(JOB_DECLARATIONS, instance);
}
