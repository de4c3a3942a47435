import { describe, expect, it } from '@jest/globals';
import type { JobPolicy } from '../../../lib/schedule/job-policy.js';
import { type JobRecord, readJobRecord } from '../../../lib/operate/job-record.js';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import type { Clock } from '../../../lib/redlock/clock.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { IntervalSchedule } from '../../../lib/schedule/cron-schedule.js';
import { Ticker } from '../../../lib/schedule/ticker.js';
import { JobHandedOnError, type JobRun } from '../../../lib/schedule/job-locks.js';
import { Job } from '../../../lib/schedule/job.js';
import { JobCluster } from '../support/job-cluster.js';
import { MachineClock } from '../support/machine-clock.js';
import { maxListenersOf } from '../../support/listeners.js';

const PERIOD = 60_000;
const START = Date.UTC(2026, 0, 1);
const RESOURCE = 'job:report';

/** Runs of one instance, which end when the test lets them. */
class Instance {
  readonly runs: JobRun[] = [];
  readonly events: string[] = [];
  readonly delays: string[] = [];
  readonly job: Job;
  private readonly ends: (() => void)[] = [];
  private readonly stopping = new AbortController();
  private readonly ticker: Ticker;
  /** What a run does; by default it ends at once. */
  work: (run: JobRun) => unknown = () => undefined;

  constructor(name: string, cluster: JobCluster, clock: Clock, policy: Partial<JobPolicy> = {}, period = PERIOD) {
    const schedule = new IntervalSchedule(period);
    this.job = new Job(
      {
        ...{ name: 'report', resource: RESOURCE, schedule, ttl: 1_000, maxHold: 3_600_000, declared: 'a test' },
        policy: { recover: true, catchUp: false, overlap: 'skip', ...policy },
      },
      {
        where: 'a test',
        call: (run) => {
          this.runs.push(run);
          return this.work(run);
        },
        ...{ locks: cluster.of(name), clock, instance: name, keyPrefix: '', stopping: this.stopping.signal },
        observer: {
          started: (_, { scheduledFor, attempt }) => this.note(scheduledFor, `started ${attempt}`),
          ended: (_, { scheduledFor, outcome }) => this.note(scheduledFor, outcome),
          unfinished: (_, { scheduledFor }) => this.note(scheduledFor, 'unfinished'),
          skipped: (_, { scheduledFor, reason }) => this.note(scheduledFor, reason),
          delayed: (_, cause) => {
            this.events.push('delayed');
            this.delays.push(String(cause));
          },
        },
      },
    );
    this.ticker = new Ticker(schedule, clock, this.job);
  }

  start(): void {
    this.ticker.start();
    this.job.visit();
  }

  eventsOf(kind: string): string[] {
    return this.events.filter((event) => event.endsWith(kind));
  }

  /** As at the shutdown of the application. */
  stop(): void {
    this.ticker.stop();
    this.stopping.abort(new JobHandedOnError());
  }

  /** Lets each run last until `end`. */
  hang(): void {
    this.work = () => new Promise<void>((resolve) => this.ends.push(resolve));
  }

  end(): void {
    this.work = () => undefined;
    for (const end of this.ends.splice(0)) end();
  }

  private note(tick: Date, event: string): void {
    this.events.push(`${(tick.getTime() - START) / PERIOD} ${event}`);
  }
}

function setUp(policy: Partial<JobPolicy> = {}, aheadOfSecond = 0) {
  const clock = new ManualClock(START + 1_000);
  const cluster = new JobCluster();
  const a = new Instance('a', cluster, clock, policy);
  const b = new Instance('b', cluster, aheadOfSecond === 0 ? clock : new MachineClock(clock, aheadOfSecond), policy);
  const to = (tick: number, later = 0): Promise<void> =>
    clock.advance(START + tick * PERIOD + later - clock.read().wall);
  const record = (): JobRecord | undefined => readJobRecord(cluster.value(RESOURCE));
  return { clock, cluster, a, b, to, record };
}

/** Failures of the masters to store a state. */
const refusals = (length: number): Error[] =>
  Array.from({ length }, () => new QuorumUnavailableError('set', [], [], 2, 3));

/** Instance `a` has begun the first tick and does not end it, and `b` waits for the lock. */
async function awaitedRun() {
  const stage = setUp();
  const { a, b, to } = stage;
  a.hang();
  a.start();
  await to(0, 2_000);
  b.start();
  await to(1, 1);
  return stage;
}

/** The ticks that these instances have run. */
const ticksOf = (...instances: Instance[]): number[] =>
  instances.flatMap(({ runs }) => runs.map(({ scheduledFor }) => (scheduledFor.getTime() - START) / PERIOD));

// Protocol 12.3
describe('A job on several instances', () => {
  // Protocol 12.2
  it.each([25_000, -25_000, 30_000])('runs each tick once if a clock differs by %d ms', async (ahead) => {
    const { a, b, to, record } = setUp({}, ahead);
    for (const each of [a, b]) each.start();
    await to(5, 30_001);
    const ticks = ticksOf(a, b);
    expect(ticks.sort().filter((tick) => tick >= 1 && tick <= 5)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(record()?.state).toBe('ok');
  });

  it('gives the previous run to the next one', async () => {
    const { a, to } = setUp();
    a.start();
    await to(2, 1);
    expect(a.runs[0]?.previous).toBeUndefined();
    expect(a.runs[1]?.previous).toEqual({
      ...{ scheduledFor: new Date(START + PERIOD), attempt: 1, instance: 'a', outcome: 'ok', error: undefined },
      startedAt: new Date(START + PERIOD),
      endedAt: new Date(START + PERIOD),
    });
  });
});

it('A schedule that changes while instances are replaced runs the ticks of both once, and none twice', async () => {
  const { clock, cluster, a, to } = setUp();
  const c = new Instance('c', cluster, clock, {}, 1.5 * PERIOD);
  a.start();
  c.start();
  await to(3, 1);
  expect(ticksOf(a, c).sort()).toEqual([1, 1.5, 2, 3]);
  a.stop();
  await to(6, 1);
  expect(c.eventsOf('ok').slice(-2)).toEqual(['4.5 ok', '6 ok']);
});

it('A job that never returns is reported when it loses its lock, and not again when it returns', async () => {
  const { a, b, cluster, to, record } = await awaitedRun();
  expect(a.job.lost).toBeUndefined();
  cluster.expire(RESOURCE);
  expect(a.runs[0]?.signal.reason).toEqual(new Error('the lock was lost'));
  expect(maxListenersOf(a.runs[0]!.signal)).toBe(0);
  expect(record()?.state).toBe('started');
  expect(a.events).toEqual(['1 started 1', '1 unfinished']);
  expect(a.job.lost).toEqual({ scheduledFor: new Date(START + PERIOD), attempt: 1 });
  await to(3, 1);
  expect(b.eventsOf('ok')).toEqual(['1 ok', '2 ok', '3 ok']);
  expect(a.runs).toHaveLength(1);
  a.end();
  await to(3, 2);
  expect(a.job.lost).toBeUndefined();
  expect(a.eventsOf('unfinished')).toHaveLength(1);
});

describe('A job whose instance is gone', () => {
  // Protocol 12.4
  it('runs again as the next attempt, on an instance that waited', async () => {
    const { b, cluster, to, record } = await awaitedRun();
    expect(cluster.waiters(RESOURCE)).toEqual(['b']);
    cluster.expire(RESOURCE);
    await to(1, 2);
    expect(b.runs[0]).toMatchObject({ scheduledFor: new Date(START + PERIOD), attempt: 2 });
    expect(record()?.runs.map(({ outcome, instance }) => [outcome, instance])).toEqual([
      ['ok', 'b'],
      ['unfinished', 'a'],
    ]);
  });

  it('runs again on an instance that noticed it too late to run it', async () => {
    const { a, b, cluster, to } = setUp();
    a.hang();
    a.start();
    await to(1, 1);
    b.job.missed(START + PERIOD, 'late');
    await to(1, 2);
    expect([b.events, cluster.waiters(RESOURCE)]).toEqual([['1 late'], ['b']]);
    cluster.expire(RESOURCE);
    await to(1, 3);
    expect(b.events).toEqual(['1 late', '1 started 2', '1 ok']);
  });
});

describe('A job that fails', () => {
  it('tries to record its end until it can', async () => {
    const { a, cluster, to, record } = setUp();
    a.work = () => void cluster.failures.push(...refusals(3));
    a.start();
    await to(1, 1_000);
    expect(record()?.state).toBe('ok');
    expect(a.events).toEqual(['1 started 1', '1 ok']);
  });

  it('runs again if the masters refuse its end for a ttl although the lock is kept', async () => {
    const { a, cluster, to, record } = setUp();
    a.work = ({ attempt }) => {
      if (attempt === 1) cluster.failures.push(...refusals(11));
    };
    a.start();
    await to(1, 5_000);
    expect(a.events).toEqual(['1 started 1', '1 unfinished', '1 started 2', '1 ok']);
    expect(record()).toMatchObject({ state: 'ok', attempt: 2 });
  });

  it('does not run before the masters know that it starts', async () => {
    const { a, cluster, to } = setUp();
    cluster.failures.push(...refusals(1));
    a.start();
    await to(1, 1);
    expect(a.runs).toHaveLength(0);
    await to(1, 1_000);
    expect(a.events).toEqual(['delayed', '1 started 1', '1 ok']);
  });
});

describe('A tick that comes due while an earlier one runs', () => {
  it('is skipped on all instances', async () => {
    const { a, b, to } = await awaitedRun();
    await to(2, 1_000);
    a.end();
    await to(2, 2_000);
    const skip = { scheduledFor: new Date(START + 2 * PERIOD), reason: 'overlap' };
    for (const { job } of [a, b]) expect(job.lastSkip).toMatchObject(skip);
    await to(3, 1);
    expect(ticksOf(a, b)).toEqual([1, 3]);
  });

  it('runs if only the end of the earlier one was still to be stored', async () => {
    const { a, cluster, to } = setUp();
    a.hang();
    a.start();
    await to(2, -200);
    cluster.failures.push(...refusals(5));
    a.end();
    await to(2, 1_000);
    expect(a.events).toEqual(['1 started 1', '1 ok', '2 started 1', '2 ok']);
  });

  it('runs afterwards if it is queued, the newest only', async () => {
    const { a, to } = setUp({ overlap: 'queue' });
    a.hang();
    a.start();
    await to(3, 1_000);
    a.end();
    await to(3, 2_000);
    expect(a.events).toEqual(['1 started 1', '2 superseded', '1 ok', '3 started 1', '3 ok']);
  });
});

it('A job skips a tick that it notices too late', async () => {
  const { a, clock, to } = setUp();
  a.start();
  await clock.settle();
  clock.stall(PERIOD * 1.9);
  await clock.settle();
  await to(2, 1);
  expect(a.events).toEqual(['1 late', '2 started 1', '2 ok']);
});

describe('At a shutdown', () => {
  it('a job that ends with an error is run again by another instance at once', async () => {
    const { a, b, clock, to, record } = setUp();
    a.work = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    a.start();
    await to(0, 2_000);
    b.start();
    await to(1, 1);
    a.stop();
    expect(a.runs[0]?.signal.reason).toBeInstanceOf(JobHandedOnError);
    await clock.settle();
    expect(a.events).toEqual(['1 started 1', '1 unfinished']);
    expect(b.events).toEqual(['1 started 2', '1 ok']);
    expect(record()).toMatchObject({ attempt: 2, holder: 'b', state: 'ok' });
  });

  it('a job that still succeeds has run', async () => {
    const { a, b, clock, record } = await awaitedRun();
    a.stop();
    a.end();
    await clock.settle();
    expect(record()).toMatchObject({ attempt: 1, holder: 'a', state: 'ok' });
    expect(b.runs).toHaveLength(0);
  });

  it('waiting ends, and no timer is left', async () => {
    const { a, b, cluster, clock, to } = setUp();
    a.hang();
    a.start();
    b.start();
    await to(1, 1);
    const waiting = cluster.holder(RESOURCE) === 'a' ? b : a;
    waiting.stop();
    await clock.settle();
    expect(cluster.waiters(RESOURCE)).toEqual([]);
    for (const each of [a, b]) each.stop();
    for (const each of [a, b]) each.end();
    await clock.settle();
    expect(clock.pendingTimers).toBe(0);
  });
});
