import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { Lock } from '../../lib/locks/lock.js';
import { compileLibrary, type Program, start } from '../support/compiled.js';
import { type CountingContender, Crowd } from '../support/crowd.js';
import { eventually } from '../support/eventually.js';
import { shared } from '../support/shared.js';

const WAIT = { wait: '60s' } as const;
/** The longest delay allowed for a waiter, in milliseconds. */
const BOUND = 100;

const compiled = shared(compileLibrary);

describe('Waiting while processes and masters die', () => {
  const programs: Program[] = [];

  /** Starts a process that waits for `k`, or holds it if it is free. */
  function spawn(crowd: Crowd, task: { ttl?: number; hold?: number } = {}): Program {
    const program = start(compiled(), 'wait', { urls: crowd.masters.urls, resource: 'k', ttl: 20_000, ...task });
    programs.push(program);
    return program;
  }

  /** Fires when a waiter that may wait for `ttl` milliseconds from now on is too late. */
  function tooLate(ttl: number): Promise<string> {
    // Two timers in sequence: a busy machine delays them as it delays those of the waiter.
    const timer = (delay: number): Promise<unknown> => sleep(delay, undefined, { ref: false });
    return timer(ttl).then(async () => (await timer(BOUND), 'too late'));
  }

  async function expectInTime(late: Promise<string>, turn: Promise<unknown>): Promise<void> {
    expect(await Promise.race([turn.then(() => 'in time'), late])).toBe('in time');
  }

  async function expectNothingLeft(crowd: Crowd): Promise<void> {
    await eventually(async () => (await crowd.keys()) === 0, 9_000);
  }

  afterAll(() => programs.forEach((program) => program.kill()));

  it('the lock of a killed process is taken at its expiry by one waiter, without a thundering herd', async () => {
    await using crowd = await Crowd.of(8, 5);
    // It is extended until eight waiters have queued, however busy the machine is.
    const ttl = 2_000;
    const holder = spawn(crowd, { ttl });
    await holder.line();
    const turns = crowd.contenders.map((contender) => contender.acquire('k', '20s', WAIT));
    await crowd.untilQueued('k', 8);
    holder.kill();
    await holder.ended;
    const late = tooLate(ttl);
    // The count starts at the last moment at which no waiter can have the lock: it needs three of the masters.
    const left = ((await crowd.call('PTTL', 'lock:k')) as number[]).sort((a, b) => a - b);
    await sleep(Math.max(0, left[2]! - 20));
    const before = crowd.requests;
    await expectInTime(late, Promise.race(turns));
    const requests = crowd.requests - before;
    // Each waiter asks the home master once, and the next holder sends four more requests. Any waiter may just have asked all
    // masters.
    expect(requests).toBeLessThanOrEqual(8 + 4 + 8 * 6);
    await takeAll(turns);
    await expectNothingLeft(crowd);
  });

  it('a waiting process that hangs when it is woken delays no other waiter beyond the ttl', async () => {
    await using crowd = await Crowd.of(2, 3);
    const [holder, second] = crowd.contenders as [CountingContender, CountingContender];
    const ttl = 1_000;
    const lock = await crowd.lockOnAll(holder, 'k', ttl, { extend: true });
    const hung = spawn(crowd, { hold: 0 });
    await crowd.untilQueued('k', 1);
    const turn = second.acquire('k', '20s', WAIT);
    await crowd.untilQueued('k', 2);
    hung.pause();
    const late = tooLate(ttl);
    await lock.release();
    await expectInTime(late, turn);
    hung.resume();
    await (await turn).release();
    await hung.line();
    expect(await hung.ended).toBe(0);
    await expectNothingLeft(crowd);
  });

  /** Takes and releases the lock of every waiter. */
  async function takeAll(turns: readonly Promise<Lock>[]): Promise<void> {
    await Promise.all(turns.map(async (turn) => (await turn).release()));
  }
});
