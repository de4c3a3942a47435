import { beforeEach, describe, expect, it } from '@jest/globals';
import { EARLY_AFTER } from '../../../../lib/redis/guard/early-vote.js';
import { GuardParts } from '../../support/guard-parts.js';
import { threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
});

describe('EarlyVote', () => {
  it('counts until the reports were requested, and not until they arrived', () => {
    for (const server of servers) server.quarantine(30_000, { guess: 1 });
    const parts = new GuardParts(clock, servers);
    const { earlyVote, group } = parts;
    expect(earlyVote.observe(parts.read(), clock.read())).toBeUndefined();
    clock.stall(EARLY_AFTER - 500);
    const asked = clock.read();
    const reports = parts.read();
    // A master that answers late: a process may have vetoed one of the others meanwhile.
    clock.stall(1_000);
    expect(earlyVote.observe(reports, asked)).toEqual({ readAfter: 500 });
    expect(earlyVote.observe(parts.read(), clock.read())).toEqual({ vote: group.identities });
  });

  it('counts by the clocks of all servers, too: the clock of this process may jump', () => {
    for (const server of servers) server.quarantine(30_000, { guess: 1 });
    const parts = new GuardParts(clock, servers);
    const { earlyVote, group } = parts;
    expect(earlyVote.observe(parts.read(), clock.read())).toBeUndefined();
    clock.stall(EARLY_AFTER);
    // Seen from the servers, two seconds fewer have passed.
    for (const server of servers) server.ahead -= 2_000;
    const progress = earlyVote.observe(parts.read(), clock.read());
    expect(progress).toMatchObject({ readAfter: expect.any(Number) });
    expect((progress as { readAfter: number }).readAfter).toBeGreaterThan(1_990);
    clock.stall(2_000);
    expect(earlyVote.observe(parts.read(), clock.read())).toEqual({ vote: group.identities });
  });

  it('does not vote early while the clock of a single server says that it is too soon', () => {
    for (const server of servers) server.quarantine(30_000, { guess: 1 });
    const parts = new GuardParts(clock, servers);
    parts.earlyVote.observe(parts.read(), clock.read());
    clock.stall(EARLY_AFTER);
    servers[1].ahead -= 1_000;
    expect(parts.earlyVote.observe(parts.read(), clock.read())).toHaveProperty('readAfter');
  });

  it('counts from the first time that this process looks without a lock, and not from a time at which it had one', () => {
    for (const server of servers) server.quarantine(30_000, { guess: 1 });
    const parts = new GuardParts(clock, servers);
    const { earlyVote, group } = parts;
    const attempt = group.beginAttempt();
    expect(earlyVote.observe(parts.read(), clock.read())).toBeUndefined();
    clock.stall(1_000);
    group.abandon(attempt);
    expect(earlyVote.observe(parts.read(), clock.read())).toBeUndefined();
    clock.stall(1_000);
    expect(earlyVote.observe(parts.read(), clock.read())).toEqual({ readAfter: EARLY_AFTER - 1_000 });
  });
});
