import { describe, expect, it } from '@jest/globals';
import { combine } from '../../../../lib/core/combined-observer.js';
import { combineJobObservers } from '../../../../lib/core/jobs/combined-job-observer.js';
import type { JobObserver } from '../../../../lib/core/jobs/job-observer.interface.js';

const SKIP = { scheduledFor: new Date(0), at: new Date(0), reason: 'finished' } as const;

describe('Combined observers of jobs', () => {
  it('disturb each other neither by an error nor by a rejection', async () => {
    const heard: string[] = [];
    const faults: unknown[] = [];
    const broken = {
      skipped: (): never => {
        throw new Error('at once');
      },
      delayed: () => Promise.reject(new Error('later')),
    };
    const good: JobObserver = {
      skipped: (job, { reason }) => heard.push(`${job} ${reason}`),
      delayed: (job) => heard.push(`${job} delayed`),
    };
    const combined = combineJobObservers(
      () => [broken, {}, good],
      (error) => faults.push((error as Error).message),
    );
    combined.skipped('report', SKIP);
    combined.delayed('report', new Error('no quorum'));
    await Promise.resolve();
    expect(heard).toEqual(['report finished', 'report delayed']);
    expect(faults).toEqual(['at once', 'later']);
  });

  it('are asked for at each event', () => {
    const heard: string[] = [];
    const observers: JobObserver[] = [];
    const combined = combineJobObservers(
      () => observers,
      () => undefined,
    );
    combined.skipped('early', SKIP);
    observers.push({ skipped: (job) => heard.push(job) });
    combined.skipped('late', SKIP);
    expect(heard).toEqual(['late']);
  });

  it('come from the observers of locks that have one', () => {
    const heard: string[] = [];
    const combined = combine([{ jobs: { skipped: (job) => heard.push(job) } }, {}], () => undefined);
    combined.jobs?.skipped?.('report', SKIP);
    expect(heard).toEqual(['report']);
    expect(combine([{}], () => undefined)).toEqual({});
  });
});
