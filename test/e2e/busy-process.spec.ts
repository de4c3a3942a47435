import { defaultMaxListeners, getEventListeners } from 'node:events';
import { afterAll, afterEach, expect, it, jest } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { type JobRun, LockedCron, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { ManualClock } from 'nestjs-redlock/testing';
import { DelayingProxy } from '../benchmark/proxy/delaying-proxy.mjs';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, logs } from './support/applications.js';
import { Locks } from './support/locks.js';

/** Longer and shorter than `masterTimeout`, in milliseconds. */
const BLOCKS = [20, 450, 80, 420, 150, 450, 40, 430];
/** More than the default: servers and proxies have to run, too, on a busy machine. */
const MASTER_TIMEOUT = '400ms';
/** Between two turns with calls, in milliseconds: time for the rounds of the jobs. */
const GAP = 100;
/** Of the job with a schedule, in milliseconds. */
const PERIOD = 3_000;
const TICKS = 4;

@Injectable()
class Jobs {
  readonly ticks: number[] = [];
  ran = 0;

  @LockedCron(`*/${PERIOD / 1_000} * * * * *`, { name: 'report' })
  async report({ scheduledFor }: JobRun): Promise<void> {
    this.ticks.push(scheduledFor.getTime());
  }

  @WithLock('clean-up', { onLocked: 'skip' })
  async cleanUp(): Promise<void> {
    this.ran++;
  }

  @WithLock('mail', { onLocked: 'skip' })
  async mail(): Promise<void> {
    this.ran++;
  }

  @WithLock('statistics', { onLocked: 'skip' })
  async statistics(): Promise<void> {
    this.ran++;
  }
}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

const masters = sharedMasters(3);
const proxies: DelayingProxy[] = [];

afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => Promise.all(proxies.map((proxy) => proxy.end())));

/** An application whose masters are this far away. */
async function start(roundTrip: number) {
  const proxy = await DelayingProxy.start(masters.urls);
  proxies.push(proxy);
  await proxy.delayBy(roundTrip);
  const options = { keyPrefix: `away-${roundTrip}:`, restartGuard: false, masterTimeout: MASTER_TIMEOUT } as const;
  const app = await boot({
    imports: [
      RedlockModule.forRoot({ masters: [...proxy.urls], ...options }),
      ScheduleModule.forRoot(),
      RedlockScheduleModule,
    ],
    providers: [Jobs],
  });
  return { roundTrip, jobs: app.get(Jobs), locks: app.get(LockService) };
}

// Protocol 4.1 and 4.7
it('A process that computes in blocks loses no run of its jobs, and finds fault with no master', async () => {
  const applications = [await start(0), await start(2), await start(6)];
  const calls: Promise<unknown>[] = [];
  const votes: boolean[] = [];
  const until = Date.now() + (TICKS + 1) * PERIOD;
  for (let turn = 0; Date.now() < until; turn++) {
    for (const { jobs, locks } of applications) {
      // Before the calls: a probe sends what waits for the end of the turn.
      void locks.probe().then(({ canVote }) => votes.push(canVote));
      calls.push(jobs.cleanUp(), jobs.mail(), jobs.statistics());
    }
    block(BLOCKS[turn % BLOCKS.length]!);
    await sleep(GAP);
    await Promise.allSettled(calls);
  }
  const failed = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected');
  expect(failed).toEqual([]);
  for (const { roundTrip, jobs } of applications) {
    expect({ roundTrip, ran: jobs.ran }).toEqual({ roundTrip, ran: calls.length / applications.length });
    const [first = 0] = jobs.ticks;
    // The last one may still be under way.
    const ticks = jobs.ticks.slice(0, TICKS);
    expect({ roundTrip, ticks }).toEqual({ roundTrip, ticks: ticks.map((_, index) => first + index * PERIOD) });
    expect(ticks).toHaveLength(TICKS);
  }
  expect(votes).not.toContain(false);
  expect(logs.filter((line) => /^(?:warn|error)/.test(line))).toEqual([]);
}, 120_000);

/** A class with one job. */
function jobOf(name: string, ran: string[]): Type {
  @Injectable()
  class Job {
    @LockedInterval('1m', { name })
    async run(): Promise<void> {
      ran.push(name);
      await Promise.resolve();
    }
  }
  return Job;
}

it('Hundreds of jobs leave no signal with more listeners than Node takes for a leak', async () => {
  const signals = new Set<EventTarget>();
  let most = 0;
  const { value: listen } = Object.getOwnPropertyDescriptor(EventTarget.prototype, 'addEventListener') as {
    readonly value: EventTarget['addEventListener'];
  };
  jest.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (this: EventTarget, ...args) {
    Reflect.apply(listen, this, args);
    signals.add(this);
    most = Math.max(most, getEventListeners(this, args[0]).length);
  });
  const [count, minute] = [200, 60_000];
  const clock = new ManualClock(Date.UTC(2026, 0, 1, 0, 0, 30));
  const locks = new Locks(3, { clock, drainTimeout: 0 });
  const ran: string[] = [];
  for (const instance of ['a', 'b']) {
    const providers = Array.from({ length: count }, (_, index) => jobOf(`job${index}`, ran));
    await boot({ imports: [locks.module({ instance }), ScheduleModule.forRoot(), RedlockScheduleModule], providers });
    await clock.settle();
  }
  await clock.advance(2 * minute);
  expect(ran).toHaveLength(2 * count);
  expect(signals.size).toBeGreaterThan(count);
  expect(most).toBeLessThanOrEqual(defaultMaxListeners);
}, 60_000);
