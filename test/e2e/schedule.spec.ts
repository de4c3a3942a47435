import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, type ModuleMetadata, type Provider, Scope } from '@nestjs/common';
import { Cron, CronExpression, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import type { TestingModule } from '@nestjs/testing';
import { LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import {
  JobHistory,
  type JobRun,
  LockedCron,
  type LockedCronOptions,
  LockedInterval,
  RedlockScheduleModule,
} from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { EMPTY } from 'rxjs';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, logs } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { Locks } from './support/locks.js';

const START = Date.UTC(2026, 2, 29, 0, 0, 30);
const MINUTE = 60_000;

/** What the job of each instance does, and what it did. */
const work = new Map<string, (run: JobRun) => unknown>();
const runs: { readonly instance: string; readonly run: JobRun }[] = [];
const INSTANCE = Symbol('instance');

@Injectable()
class Reports {
  [INSTANCE] = '';

  @LockedCron(CronExpression.EVERY_MINUTE, { name: 'report', timeZone: 'Europe/Berlin' })
  async report(run: JobRun): Promise<void> {
    runs.push({ instance: this[INSTANCE], run });
    await work.get(this[INSTANCE])?.(run);
  }

  @LockedInterval('1h', { name: 'clean' })
  async clean(): Promise<void> {}
}

/** Applications that share their masters and their clock. */
class Cluster {
  readonly clock = new ManualClock(START);
  readonly locks = new Locks(3, { clock: this.clock, drainTimeout: 0 });

  async start(instance: string, schedule = ScheduleModule.forRoot()): Promise<TestingModule> {
    const app = await boot({
      imports: [this.locks.module({ instance }), schedule, RedlockScheduleModule],
      providers: [Reports],
    });
    app.get(Reports)[INSTANCE] = instance;
    await this.clock.settle();
    return app;
  }

  async to(minute: number, later = 0): Promise<void> {
    const target = Math.floor(START / MINUTE) * MINUTE + minute * MINUTE + later;
    await this.clock.advance(target - this.clock.read().wall);
  }
}

afterEach(() => {
  work.clear();
  runs.length = 0;
});

describe('Scheduled jobs of several applications', () => {
  it('run each tick once, and have a history', async () => {
    const cluster = new Cluster();
    const [first] = [await cluster.start('a'), await cluster.start('b'), await cluster.start('c')];
    await cluster.to(3, 1_000);
    const ticks = runs.map(({ run }) => run.scheduledFor.toISOString().slice(11, 16));
    expect(ticks).toEqual(['00:01', '00:02', '00:03']);

    const history = first.get(JobHistory);
    const [report, clean] = await history.list();
    expect(report).toMatchObject({
      ...{ name: 'report', schedule: '*/1 * * * *', timeZone: 'Europe/Berlin', service: undefined, isSettled: true },
      ...{ current: undefined, next: new Date('2026-03-29T00:04:00Z') },
    });
    expect(report?.runs).toHaveLength(3);
    expect(clean).toMatchObject({ name: 'clean', schedule: '1h', runs: [], lastSkip: undefined });
    await expect(history.last('report')).resolves.toEqual({
      ...{ scheduledFor: new Date('2026-03-29T00:03:00Z'), attempt: 1, outcome: 'ok', error: undefined },
      ...{ startedAt: expect.any(Date), endedAt: expect.any(Date), instance: runs[2]?.instance },
    });
    await expect(history.last('clean')).resolves.toBeUndefined();
    await expect(history.last('unknown')).rejects.toThrow('(report, clean)');
    const skipped = runs.at(-1)?.instance === 'a' ? undefined : expect.objectContaining({ reason: 'finished' });
    if (skipped) expect(report?.lastSkip).toEqual(skipped);
    expect(
      logs.filter((line) => line.startsWith('debug') && line.includes('another instance has run it')),
    ).toHaveLength(6);
  });

  it('have an overview for the dashboard while the masters do not answer', async () => {
    const cluster = new Cluster();
    const app = await cluster.start('a');
    cluster.locks.each('takeDown');
    const asked = app.get(JobHistory).overview();
    await cluster.clock.advance(MINUTE / 6);
    await expect(asked).resolves.toMatchObject([
      {
        name: 'report',
        schedule: '*/1 * * * *',
        runs: [],
        isSettled: false,
        problem: expect.stringContaining('state'),
      },
      { name: 'clean', problem: expect.any(String) },
    ]);
  });

  it('have their lock in the context of the run', async () => {
    const cluster = new Cluster();
    const app = await cluster.start('a');
    const held: unknown[] = [];
    work.set('a', ({ lock, job }) => {
      held.push(app.get(LockService).current() === lock, lock.resources, lock.isHeld, job);
    });
    await cluster.to(1, 1_000);
    expect(held).toEqual([true, ['job:report'], true, 'report']);
  });

  it('log an error of a job once, record it, and run the next tick', async () => {
    const cluster = new Cluster();
    const app = await cluster.start('a');
    await cluster.start('b');
    for (const instance of ['a', 'b']) work.set(instance, () => Promise.reject(new Error('no paper')));
    await cluster.to(1, 1_000);
    expect(logs.filter((line) => line.startsWith('error'))).toEqual([
      'error job report of 2026-03-29T00:01:00.000Z has failed: no paper',
    ]);
    await expect(app.get(JobHistory).last('report')).resolves.toMatchObject({ outcome: 'failed', error: 'no paper' });
    await cluster.to(2, 1_000);
    expect(runs).toHaveLength(2);
  });

  it('warn once of an outage because of which they do not run, and run after it', async () => {
    const cluster = new Cluster();
    await cluster.start('a');
    cluster.locks.each('takeDown');
    await cluster.to(2, 30_000);
    expect(logs.filter((line) => line.startsWith('warn job report'))).toEqual([
      expect.stringMatching(
        /^warn job report cannot be decided on now: cannot lock "job:report": 2 of 3 masters must vote \(/,
      ),
    ]);
    cluster.locks.each('bringUp');
    await cluster.to(2, 40_000);
    expect(runs.map(({ run }) => run.scheduledFor.toISOString().slice(11, 16))).toEqual(['00:02']);
  });

  it('keep their record from values of the method', async () => {
    const cluster = new Cluster();
    const app = await cluster.start('a');
    work.set('a', async ({ lock }) => lock.state.set({ page: 1 }));
    await cluster.to(1, 1_000);
    const [report] = await app.get(JobHistory).list();
    const error =
      'the state of "job:report" is the record of the job: keep a value of your own in the state of another lock';
    expect(report?.runs).toMatchObject([{ outcome: 'failed', error }]);
  });

  it('warn once where another application has a job of the same name, and not on instances of one', async () => {
    const cluster = new Cluster();
    await cluster.start('a');
    await cluster.start('b');
    await cluster.to(1, 1_000);
    const warnings = (): string[] => logs.filter((line) => line.startsWith('warn job'));
    expect(warnings()).toEqual([]);

    @Injectable()
    class Invoices {
      @LockedCron('*/2 * * * *', { name: 'report' })
      async send(): Promise<void> {}
    }
    await boot({
      imports: [cluster.locks.module({ instance: 'other' }), ScheduleModule.forRoot(), RedlockScheduleModule],
      providers: [Invoices],
    });
    await cluster.to(6, 1_000);
    const [ours, theirs] = [
      "@LockedCron on Reports.report('*/1 * * * *', Europe/Berlin)",
      '@LockedCron on Invoices.send',
    ];
    expect(warnings()[0]).toContain(`job report is ${theirs}('*/2 * * * *') here, and ${ours} on instance`);
    // Once on each instance that has met it.
    expect(warnings().length).toBeLessThanOrEqual(3);
    for (const line of warnings().slice(1)) expect(line).toContain(`job report is ${ours} here, and ${theirs}`);
  });

  it('are turned off with those of @nestjs/schedule', async () => {
    const cluster = new Cluster();
    const app = await cluster.start('a', ScheduleModule.forRoot({ cronJobs: false, intervals: false }));
    await cluster.to(5);
    expect(runs).toEqual([]);
    expect(cluster.clock.pendingTimers).toBe(0);
    await expect(app.get(JobHistory).list()).resolves.toHaveLength(2);
  });
});

/** A class with one job. */
function jobWith(expression: string, options: LockedCronOptions, scope?: Scope): Provider {
  @Injectable(scope === undefined ? {} : { scope })
  class Jobs {
    @LockedCron(expression, options)
    async run(): Promise<void> {}
  }
  return Jobs;
}

/** An object that Nest does not build. */
function madeOf(job: Provider): unknown {
  return new (job as new () => object)();
}

const memory = RedlockModule.forRoot({ masters: 'memory' });
const complete = [memory, ScheduleModule.forRoot(), RedlockScheduleModule];
const MINUTELY = '* * * * *';

it.each([
  ['replaces the job of the class that it extends', '0 * * * *', ['b']],
  ['keeps that job if it is not decorated again', undefined, ['a']],
])('A job that overrides a method that is decorated, too, %s', async (_, expression, names) => {
  class Base {
    @LockedCron(MINUTELY, { name: 'a' })
    async run(): Promise<void> {}
  }
  class Override extends Base {
    override async run(): Promise<void> {}
  }
  if (expression !== undefined) {
    const descriptor = Object.getOwnPropertyDescriptor(Override.prototype, 'run');
    LockedCron(expression, { name: 'b' })(Override.prototype, 'run', descriptor as never);
  }
  const app = await boot({ imports: complete, providers: [Override] });
  const overview = await app.get(JobHistory).overview();
  expect(overview.map(({ name }) => name)).toEqual(names);
});

describe('A job that is declared wrongly', () => {
  const job = (options: object | undefined, expression = MINUTELY): ModuleMetadata => ({
    ...{ imports: complete, providers: [jobWith(expression, options as LockedCronOptions)] },
  });
  const made = (provider: object): Provider => {
    return { provide: 'jobs', useFactory: () => madeOf(jobWith(MINUTELY, { name: 'x' })), ...provider } as Provider;
  };
  const { providers } = job({ name: 'x' });
  const twins = [...providers!, { provide: 'y', useClass: jobWith('0 * * * *', { name: 'x' }) as never }];
  const user = { provide: 'user', useFactory: () => 1, inject: ['jobs'] };
  const unimported = [memory, ScheduleModule.forRoot()];
  const NOT_IMPORTED = 'RedlockScheduleModule, which runs them, is not imported';

  it.each<[string, ModuleMetadata, string]>([
    ['no name', job({}), '@LockedCron on Jobs.run: name'],
    ['a placeholder', job({ name: 'report:{id}' }), '{id}'],
    ['a name that another job has', { imports: complete, providers: twins }, 'must be different for each job'],
    ['an invalid expression', job({ name: 'x' }, '61 * * * *'), 'Field value (61) is out of range'],
    ['the name that the time zone has elsewhere', job({ name: 'x', tz: 'UTC' }), 'did you mean timeZone?'],
    [
      'no options',
      job(undefined),
      "@LockedCron on Jobs.run needs a schedule and a name: @LockedCron('0 3 * * *', { name: 'report' }), got undefined",
    ],
    ['a wrong overlap', job({ name: 'x', overlap: 'wait' }), "must be 'skip' or 'queue'"],
    [
      'a request scope',
      { imports: complete, providers: [jobWith(MINUTELY, { name: 'x' }, Scope.REQUEST)] },
      'needs a singleton',
    ],
    [
      'a transient factory',
      { imports: complete, providers: [made({ scope: Scope.TRANSIENT }), user] },
      'must be a singleton',
    ],
    ['no RedlockScheduleModule for what a factory makes', { imports: unimported, providers: [made({})] }, NOT_IMPORTED],
    [
      'no RedlockScheduleModule for a value',
      {
        imports: unimported,
        providers: [{ provide: 'jobs', useValue: madeOf(jobWith(MINUTELY, { name: 'x' })) }],
      },
      NOT_IMPORTED,
    ],
    ['an unknown service', job({ name: 'x', service: 'billing' }), "RedlockModule.forRoot({ name: 'billing', ... })"],
    [
      'no RedlockModule',
      { imports: [ScheduleModule.forRoot(), RedlockScheduleModule], providers: providers! },
      'needs a lock service: import RedlockModule.forRoot(...)',
    ],
    [
      'no ScheduleModule',
      { imports: [memory, RedlockScheduleModule], providers: providers! },
      'needs ScheduleModule.forRoot() of @nestjs/schedule',
    ],
    ['no RedlockScheduleModule', { imports: unimported, providers: providers! }, 'import RedlockScheduleModule'],
  ])('aborts the boot: %s', async (_, metadata, message) => {
    await expect(boot(metadata)).rejects.toThrow(message);
  });

  it('aborts the boot with another schedule above or below it, which would run the method without the lock', async () => {
    class Above {
      @Cron(MINUTELY)
      @LockedInterval('1h', { name: 'x' })
      async run(): Promise<void> {}
    }
    class Below {
      @LockedCron(MINUTELY, { name: 'x' })
      @Cron(MINUTELY)
      async run(): Promise<void> {}
    }
    const advice = 'must not be a method under @Cron, @Interval or @Timeout as well, which runs it without the lock';
    for (const [job, where] of [
      [Above, '@LockedInterval on Above.run'],
      [Below, '@LockedCron on Below.run'],
    ] as const) {
      await expect(boot({ imports: complete, providers: [job] })).rejects.toThrow(`${where} ${advice}`);
    }
  });

  it('fails in a factory that makes its object for each request', async () => {
    const app = await boot({ imports: complete, providers: [made({ scope: Scope.REQUEST })] });
    await expect(app.resolve('jobs')).rejects.toThrow('must be a singleton');
  });

  it('is refused where it is declared, unless it is a method that returns a promise', () => {
    const declare = LockedInterval('1m', { name: 'x' }) as (
      target: object,
      property: string,
      descriptor: object,
    ) => void;
    class Jobs {
      static still = (): unknown => undefined;
      stream(): unknown {
        return EMPTY;
      }
      *steps(): Generator<number> {
        yield 1;
      }
    }
    Reflect.defineMetadata('design:returntype', EMPTY.constructor, Jobs.prototype, 'stream');
    const descriptorOf = (target: object, name: string): object => Object.getOwnPropertyDescriptor(target, name) ?? {};
    for (const [target, name, message] of [
      [Jobs, 'still', '@LockedInterval on Jobs.still: a static method'],
      [Jobs.prototype, 'steps', 'a generator'],
      [Jobs.prototype, 'stream', 'an Observable'],
      [Jobs.prototype, 'absent', 'an accessor or a property'],
    ] as const) {
      expect(() => declare(target, name, descriptorOf(target, name))).toThrow('needs a method that returns a promise');
      expect(() => declare(target, name, descriptorOf(target, name))).toThrow(message.replace(/^.*: /, ''));
    }
  });
});

describe('Jobs of one name in two lock services', () => {
  const masters = sharedMasters(2);

  class Jobs {
    @LockedInterval('1h', { name: 'report' })
    async report(): Promise<void> {}
  }

  class OtherJobs {
    @LockedInterval('1h', { name: 'report', service: 'other' })
    async report(): Promise<void> {}
  }

  function bootOn(urls: readonly string[], ofOther: { readonly masters: string[]; readonly keyPrefix?: string }) {
    return boot({
      imports: [
        RedlockModule.forRoot({ masters: [...urls], restartGuard: false }),
        RedlockModule.forRoot({ name: 'other', restartGuard: false, ...ofOther }),
        ...[ScheduleModule.forRoot(), RedlockScheduleModule],
      ],
      providers: [Jobs, OtherJobs],
    });
  }

  it('are refused on the same masters, where they would share a record', async () => {
    const [first = '', second = ''] = masters.urls;
    await expect(bootOn(masters.urls, { masters: [second] })).rejects.toThrow(
      'must be different for each job on the same masters, and @LockedInterval on Jobs.report has the same',
    );
    const app = await bootOn([first], { masters: [second] });
    expect((await app.get(JobHistory).overview()).map(({ name }) => name)).toEqual(['report', 'report']);
  });

  it('are two jobs under different key prefixes', async () => {
    const [first = ''] = masters.urls;
    const app = await bootOn([first], { masters: [first], keyPrefix: 'other' });
    expect(await app.get(JobHistory).overview()).toHaveLength(2);
  });
});

describe.each(['first', 'last'])('@WithLock with ScheduleModule imported %s', (position) => {
  let locks: Locks;
  beforeEach(() => {
    locks = new Locks();
  });

  const imports = () =>
    position === 'first' ? [ScheduleModule.forRoot(), locks.module()] : [locks.module(), ScheduleModule.forRoot()];

  it('locks @Cron, @Interval and @Timeout, above and below the decorator', async () => {
    const [cron, interval, timeout] = [deferred<boolean>(), deferred<boolean>(), deferred<boolean>()];
    @Injectable()
    class Jobs {
      @WithLock('cron', { ttl: '5s', onLocked: 'skip' })
      @Cron('0 0 1 1 *', { name: 'cron' })
      async onCron(): Promise<void> {
        cron.resolve(locks.held);
      }

      @WithLock('interval')
      @Interval('interval', 1)
      async onInterval(): Promise<void> {
        interval.resolve(locks.held);
      }

      @Timeout('timeout', 1)
      @WithLock('timeout')
      async onTimeout(): Promise<void> {
        timeout.resolve(locks.held);
      }
    }
    const app = await boot({ imports: imports(), providers: [Jobs] });
    await app.get(SchedulerRegistry).getCronJob('cron').fireOnTick();
    expect(await Promise.all([cron.promise, interval.promise, timeout.promise])).toEqual([true, true, true]);
    app.get(SchedulerRegistry).deleteInterval('interval');
  });

  it('runs a job once on three instances, however late they are, with skip and minHold', async () => {
    const ran: string[] = [];
    const instance = (name: string) => {
      @Injectable()
      class Daily {
        @WithLock('daily', { ttl: '10s', onLocked: 'skip', minHold: '10s' })
        @Cron('0 0 1 1 *', { name: 'daily' })
        async report(): Promise<string | undefined> {
          ran.push(name);
          return name;
        }
      }
      return boot({ imports: imports(), providers: [Daily] });
    };
    const apps = await Promise.all(['a', 'b', 'c'].map(instance));
    const [first, ...late] = apps.map((app) => app.get(SchedulerRegistry).getCronJob('daily'));
    await first!.fireOnTick();
    await settle();
    for (const job of late) await job.fireOnTick();
    await settle();
    expect(ran).toEqual(['a']);
  });
});
