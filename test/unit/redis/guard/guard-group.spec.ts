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
