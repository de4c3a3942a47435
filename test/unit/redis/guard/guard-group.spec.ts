import { beforeEach, describe, expect, it } from '@jest/globals';
import { generationFrom } from '../../../../lib/core/state/state-entry.js';
import type { GuardGroup } from '../../../../lib/redis/guard/guard-group.js';
import { EARLY_AFTER } from '../../../../lib/redis/guard/new-masters.js';
import { GuardParts } from '../../support/guard-parts.js';
import { type FakeServer, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;
let parts: GuardParts;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
  parts = new GuardParts(clock, servers);
});

describe('The vote of new masters', () => {
  beforeEach(() => {
    for (const server of servers) server.quarantine(30_000, { guess: 1 });
  });

  /** Milliseconds until the masters vote, by reports that are requested and arrive now. */
  const untilVote = (): number | undefined => parts.newMasters.untilVote(parts.read(), clock.read());

  it('counts until the reports were requested, and not until they arrived', () => {
    expect(untilVote()).toBe(EARLY_AFTER);
    clock.stall(EARLY_AFTER - 500);
    const asked = clock.read();
    const reports = parts.read();
    // A master that answers late: a process may have vetoed one of the others meanwhile.
    clock.stall(1_000);
    expect([parts.newMasters.untilVote(reports, asked), untilVote()]).toEqual([500, 0]);
  });

  it('counts by the clocks of all servers, too: the clock of this process may jump', () => {
    expect(untilVote()).toBe(EARLY_AFTER);
    clock.stall(EARLY_AFTER);
    // Seen from the servers, two seconds fewer have passed.
    for (const server of servers) server.ahead -= 2_000;
    expect(untilVote()).toBeGreaterThan(1_990);
    clock.stall(2_000);
    expect(untilVote()).toBe(0);
  });

  it('does not vote early while the clock of a single server says that it is too soon', () => {
    untilVote();
    clock.stall(EARLY_AFTER);
    servers[1].ahead -= 1_000;
    expect(untilVote()).toBeGreaterThan(0);
  });

  it('counts from the first time that this process looks without a lock, and not from a time at which it had one', () => {
    const { group } = parts;
    const attempt = group.beginAttempt();
    expect(untilVote()).toBeUndefined();
    clock.stall(1_000);
    group.abandon(attempt);
    expect(untilVote()).toBe(EARLY_AFTER);
    clock.stall(1_000);
    expect(untilVote()).toBe(EARLY_AFTER - 1_000);
  });
});

/** Gives a server the marker of data that was unknown until now. */
function renew(server: FakeServer, wait = 30_000): void {
  server.quarantine(wait, { generation: generationFrom(`${server.name} data`, server.time), first: 'empty' });
}

/** The milliseconds that are left, now and after the time in which processes object. */
function observeTwice(reports = () => parts.read()): unknown[] {
  const before = parts.newMasters.untilFirst(reports(), clock.read());
  clock.stall(EARLY_AFTER);
  return [before, parts.newMasters.untilFirst(reports(), clock.read())];
}

describe('The first masters of an installation', () => {
  it('are seen when the same new markers are on all masters for as long as a process takes to object', () => {
    for (const server of servers) renew(server);
    expect(observeTwice()).toEqual([EARLY_AFTER, 0]);
  });

  it('are seen although the quarantines of the masters end meanwhile', () => {
    for (const server of servers) renew(server, 1_000);
    expect(observeTwice()).toEqual([EARLY_AFTER, 0]);
  });

  it('are not seen by a process that knows that a master has lost data, however new all markers are', () => {
    for (const server of servers) renew(server);
    parts.read();
    clock.stall(1);
    renew(servers[1]);
    parts.read();
    expect(observeTwice()).toEqual([undefined, undefined]);
  });

  it('are not seen once a process has objected', () => {
    for (const server of servers) renew(server);
    parts.newMasters.untilFirst(parts.read(), clock.read());
    servers[2].change({ first: '' });
    expect(observeTwice()).toEqual([undefined, undefined]);
  });

  it('are settled when all markers say so', () => {
    for (const server of servers) renew(server);
    observeTwice();
    for (const server of servers) server.change({ first: 1 });
    expect(observeTwice()).toEqual([undefined, undefined]);
  });

  it.each<[string, (server: FakeServer) => void]>([
    ['one of them has voted for long', (server) => server.mark()],
    ['the quarantine of one of them is over', (server) => renew(server, -1)],
    [
      'one of them was restarted with old data',
      (server) => {
        renew(server);
        server.change({ first: '' });
      },
    ],
    ['only the clock of one of them was in doubt', (server) => server.quarantine(30_000, { generation: 'older@5' })],
  ])('are not seen if %s', (_, change) => {
    const [one, ...others] = servers;
    for (const server of others) renew(server);
    change(one);
    expect(observeTwice()).toEqual([undefined, undefined]);
  });

  it('are not seen while a master does not answer', () => {
    const [, ...others] = servers;
    for (const server of servers) renew(server);
    expect(observeTwice(() => parts.read(others))).toEqual([undefined, undefined]);
  });

  it('are seen although a process with a lock has vetoed an early vote', () => {
    for (const server of servers) renew(server);
    servers[2].change({ vetoed: 1 });
    expect(observeTwice()).toEqual([EARLY_AFTER, 0]);
  });
});

describe('GuardGroup', () => {
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

    it('is missing when it is refused', async () =>
      expect(await group.within(100, Promise.reject<string>(new Error('refused')))).toBeUndefined());

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
});
