import { beforeEach, describe, expect, it } from '@jest/globals';
import type { GuardGroup } from '../../../../lib/redis/guard/guard-group.js';
import { GuardParts } from '../../support/guard-parts.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let group: GuardGroup;

beforeEach(() => {
  clock = new TestClock();
  ({ group } = new GuardParts(clock, []));
});

function acquire(): void {
  expect(group.confirm(group.beginAttempt())).toBe(true);
}

describe('An attempt that was voided', () => {
  it('does not confirm, and does not engage the process', () => {
    const attempt = group.beginAttempt();
    expect(group.isEngaged).toBe(true);
    group.voidAttempts();
    expect(group.isEngaged).toBe(false);
    expect(group.confirm(attempt)).toBe(false);
    expect(group.isEngaged).toBe(false);
  });

  it('ends no lock that was acquired before', () => {
    acquire();
    const attempt = group.beginAttempt();
    group.voidAttempts();
    expect(group.confirm(attempt)).toBe(false);
    expect(group.isEngaged).toBe(true);
    group.disengage(0);
    expect(group.isEngaged).toBe(false);
  });

  it('ends no attempt that began afterwards when it is abandoned', () => {
    const voided = group.beginAttempt();
    group.voidAttempts();
    const later = group.beginAttempt();
    expect(group.confirm(voided)).toBe(false);
    group.abandon(voided);
    expect(group.isEngaged).toBe(true);
    expect(group.confirm(later)).toBe(true);
  });
});

describe('An answer with a time limit', () => {
  it('is awaited until it arrives, and not again when the limit passes', async () => {
    const answer = group.within(100, Promise.resolve('yes'));
    expect(group.pendingAnswers).toBe(1);
    expect(await answer).toBe('yes');
    expect(group.pendingAnswers).toBe(0);
    await clock.advance(200);
    expect(group.pendingAnswers).toBe(0);
  });

  it('is missing when it is refused', async () => {
    expect(await group.within(100, Promise.reject<string>(new Error('refused')))).toBeUndefined();
  });

  it('is missing after the limit, and no longer awaited when it arrives late', async () => {
    let arrive: (value: string) => void = () => undefined;
    const answer = group.within(100, new Promise<string>((resolve) => void (arrive = resolve)));
    await clock.advance(99);
    expect(group.pendingAnswers).toBe(1);
    await clock.advance(1);
    expect(await answer).toBeUndefined();
    arrive('late');
    await clock.settle();
    expect(group.pendingAnswers).toBe(0);
  });
});

describe('A process whose lock was released', () => {
  it('stays engaged for as long as the keys stay taken', () => {
    acquire();
    group.disengage(5_000);
    clock.stall(4_999);
    expect(group.isEngaged).toBe(true);
    clock.stall(1);
    expect(group.isEngaged).toBe(false);
  });

  it('stays engaged until the keys of the last one of several locks expire', () => {
    for (const keptFor of [1_000, 5_000, 2_000, 0]) {
      acquire();
      group.disengage(keptFor);
    }
    clock.stall(4_999);
    expect(group.isEngaged).toBe(true);
    clock.stall(1);
    expect(group.isEngaged).toBe(false);
  });
});
