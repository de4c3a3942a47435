import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SHORTEST_GUESS } from '../../../../lib/redis/guard/marker-writer.js';
import { type MarkerChange } from '../../../../lib/redis/guard/marker.js';
import { GuardParts } from '../../support/guard-parts.js';
import { type FakeServer, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
});

/** Parts that have read some servers, or all. */
function partsThatRead(read: readonly FakeServer[] = servers): GuardParts {
  const parts = new GuardParts(clock, servers);
  parts.read(read);
  return parts;
}

/** Parts that have read all servers, whose data is known. */
function partsThatKnow(change: MarkerChange = {}): GuardParts {
  for (const server of servers) server.mark(change);
  return partsThatRead();
}

/** Lets the writer act on the report of one server, among those of all. */
function maintain(parts: GuardParts, server: FakeServer, reports = parts.read()): Promise<boolean> {
  return parts.writer.maintain(parts.identityOf(server), server.report(), reports, clock.read());
}

describe('MarkerWriter.attend', () => {
  // Protocol 8.3
  it('lengthens a guess to the wait of another young marker that was vetoed with a longer ttl', async () => {
    const [a, b, c] = servers;
    for (const server of servers) server.quarantine(30_302, { guess: 1 });
    // A holder with a longer ttl than this process expects has reached only one of the masters.
    b.change({ vetoed: 1 });
    b.announce(60_000);
    const parts = new GuardParts(clock, servers);
    clock.stall(10_000);
    const reports = parts.read();
    for (const [identity, report] of reports) await parts.writer.maintain(identity, report, reports, clock.read());
    for (const { marker } of [a, c]) {
      expect(marker).toMatchObject({ storedTtl: 60_000, wait: parts.group.quarantineFor(60_000) });
    }
  });

  it('vetoes a new marker before it lengthens the quarantine', async () => {
    const parts = partsThatKnow();
    const [a] = servers;
    parts.group.confirm(parts.group.beginAttempt());
    void parts.ttls.announceTtl(10_000);
    a.quarantine(10_000);
    const reports = parts.read();
    expect(parts.identityOf(a).mustExtendQuarantine).toBe(true);
    await maintain(parts, a, reports);
    expect(a.marker).toMatchObject({ isVetoed: true });
    expect(parts.identityOf(a).mustExtendQuarantine).toBe(true);
  });

  // Protocol 8.5
  it('lengthens the quarantine after the veto, and asks for another reading', async () => {
    const parts = partsThatKnow();
    const [a] = servers;
    parts.group.confirm(parts.group.beginAttempt());
    a.quarantine(10_000);
    expect([await maintain(parts, a), await maintain(parts, a)]).toEqual([true, true]);
    expect(a.beats).toMatchObject([{ lengthens: true }]);
    expect(await maintain(parts, a)).toBe(false);
  });

  it('reports once that a master that lost its data cannot be marked', async () => {
    for (const server of servers) server.mark();
    const parts = partsThatRead();
    const [a] = servers;
    const identity = parts.identityOf(a);
    const masterRefused = jest.fn();
    Object.assign(parts.group.context.observer, { masterRefused });
    Object.assign(identity.server, { mark: () => Promise.resolve(undefined), markRefusal: 'OOM command not allowed' });
    a.restart();
    const reports = parts.read();
    for (let i = 0; i < 3; i++)
      expect(await parts.writer.quarantine(identity, a.report(), reports, clock.read())).toBe(false);
    const why = 'it lost its data, and it cannot be marked: OOM command not allowed';
    expect(masterRefused.mock.calls).toEqual([['a', why]]);
    const { reason, remaining } = identity.quarantineAt(clock.read())!;
    expect(reason).toBe(why);
    // The wait begins when it can be marked.
    expect(remaining).toBeGreaterThan(10_000);
  });

  it('ends the wait of a server once: it goes on to vote although its clock is set back', async () => {
    const [a] = servers;
    a.quarantine(10_000);
    const parts = partsThatRead();
    const identity = parts.identityOf(a);

    clock.stall(10_001);
    parts.read();
    expect(identity.votes).toBe(true);
    const begins = jest.spyOn(identity.server, 'onVoting');
    a.ahead = -60_000;
    clock.stall(1_000);
    expect(await maintain(parts, a)).toBe(false);
    expect(identity.votes).toBe(true);
    expect(begins).not.toHaveBeenCalled();
  });

  it('ends a wait for this process only, because the clock by which it ended may be wrong', async () => {
    const [a, b, c] = servers;
    for (const server of [b, c]) server.mark();
    a.quarantine(10_000);
    const parts = partsThatRead();
    clock.stall(10_001);
    a.ahead = -60_000;
    const before = a.changes.length;
    expect(await maintain(parts, a)).toBe(false);
    expect(parts.identityOf(a).votes).toBe(true);
    expect(a.changes).toHaveLength(before);
  });
});

describe('A process that knew the data of a master', () => {
  it('writes that later data there is not the first, and objects where another process has not known that', async () => {
    const [a, b] = servers;
    for (const server of servers) server.mark({ generation: `${server.name}@1`, first: 1 });
    const parts = partsThatRead();
    for (const server of [a, b]) server.restart();
    b.quarantine(10_000, { generation: `new@${b.time}`, first: 'empty' });
    const reports = parts.read();
    await parts.writer.quarantine(parts.identityOf(a), a.report(), reports, clock.read());
    expect(a.marker).toMatchObject({ wasEmpty: false, isFirst: false });
    expect(b.marker).toMatchObject({ wasEmpty: true });
    expect(await maintain(parts, b, reports)).toBe(true);
    expect(b.marker).toMatchObject({ wasEmpty: false });
  });

  it('does not object to another nonce of the same generation, whose clock alone was in doubt', async () => {
    const [a] = servers;
    for (const server of servers) server.mark({ generation: `${server.name}@1`, first: 1 });
    const parts = partsThatRead();
    a.quarantine(10_000, { nonce: 'another', generation: 'a@1', first: 1 });
    await maintain(parts, a);
    expect(a.marker).toMatchObject({ isFirst: true });
  });
});

it('MarkerWriter.accuse waits for the largest ttl that any lock can have, although its announcement has ended by the clock that jumped', async () => {
  const [a] = servers;
  const parts = partsThatKnow({ known: 30_000 });
  a.announce(30_000);
  a.ahead = 60_000;
  a.announce(1_000);
  await parts.writer.quarantineForClockJump(parts.identityOf(a), a.report(), 60_000);
  expect(a.marker!.from - a.time).toBe(parts.group.quarantineFor(30_000));
});

it('MarkerWriter.quarantine counts the wait that preceded the marker if a master stays unreadable', async () => {
  const [a, b] = servers;
  const parts = new GuardParts(clock, servers);
  const reports = parts.read([a, b]);
  const quarantine = (): Promise<boolean> =>
    parts.writer.quarantine(parts.identityOf(a), a.report(), reports, clock.read());
  clock.stall(parts.group.quarantineFor(parts.group.context.settings.maxTtl) - 1);
  expect(await quarantine()).toBe(false);
  expect(a.marker).toBeUndefined();
  expect(parts.identityOf(a).quarantineAt(clock.read())).toMatchObject({ remaining: 1 + SHORTEST_GUESS });
  clock.stall(1);
  expect(await quarantine()).toBe(true);
  const { run, replid } = a;
  expect(a.marker).toMatchObject({ run, replid, isGuess: true, wait: SHORTEST_GUESS });
});

// Protocol 8.9
describe('TtlAnnouncements.permit', () => {
  it('asks all masters again if one of them knows a smaller ttl, although a quorum knows the larger one', async () => {
    for (const [index, server] of servers.entries()) server.mark({ known: index === 2 ? 10_000 : 20_000 });
    const { ttls } = partsThatRead();
    const permitted = ttls.announceTtl(20_000);
    expect(permitted).toBeInstanceOf(Promise);
    expect(await permitted).toBe(20_000);
    for (const { beats, marker } of servers) {
      expect(beats).toMatchObject([
        { ttl: 20_000, known: 0 },
        { ttl: 20_000, known: 20_000 },
      ]);
      expect(marker).toMatchObject({ knownTtl: 20_000 });
    }
    expect(ttls.announceTtl(20_000)).toBe(20_000);
  });

  it('asks all masters again as long as one of them was never read', async () => {
    const [a, b, c] = servers;
    for (const server of servers) server.mark({ known: 20_000 });
    c.isDown = true;
    const { ttls } = partsThatRead([a, b]);
    expect(await ttls.announceTtl(20_000)).toBe(10_000);
  });

  it('shares the announcement of a larger ttl that is under way with all that need no more', async () => {
    const { ttls } = partsThatKnow({ known: 0 });
    const permitted = [20_000, 15_000, 20_000].map(async (ttl) => ttls.announceTtl(ttl));
    expect(await Promise.all(permitted)).toEqual([20_000, 15_000, 20_000]);
    for (const { beats } of servers) expect(beats).toHaveLength(2);
  });

  it('does not wait for an announcement under way that is too small', async () => {
    const { ttls } = partsThatKnow({ known: 0 });
    const permitted = [15_000, 20_000].map(async (ttl) => ttls.announceTtl(ttl));
    expect(await Promise.all(permitted)).toEqual([15_000, 20_000]);
    for (const { marker } of servers) expect(marker).toMatchObject({ knownTtl: 20_000 });
  });

  it('asks no master for the `ttl` option, on which all processes agree', () => {
    expect(partsThatKnow({ known: 0 }).ttls.announceTtl(10_000)).toBe(10_000);
  });
});

it('TtlAnnouncements.smallestTtl is the smallest ttl that this process has used, and at first the `ttl` option', () => {
  const { ttls } = partsThatKnow();
  expect(ttls.smallestTtl).toBe(10_000);
  for (const ttl of [5_000, 2_000, 9_000]) void ttls.announceTtl(ttl);
  expect(ttls.smallestTtl).toBe(2_000);
});

describe('TtlAnnouncements.usedTtl', () => {
  const LONG = 20_000;
  const SHORT = 5_000;

  /** Takes a short lock every second. */
  async function takeShortLocks({ ttls }: GuardParts, seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1_000);
      expect(ttls.announceTtl(SHORT)).toBe(SHORT);
    }
  }

  /** Parts with one long lock, and the short ones that follow while it lasts. */
  async function partsWithLongLock(): Promise<GuardParts> {
    const parts = partsThatKnow({ known: LONG });
    expect(parts.ttls.announceTtl(LONG)).toBe(LONG);
    await takeShortLocks(parts, LONG / 1_000);
    return parts;
  }

  it('stays that of a long lock while shorter ones are taken', async () => {
    const { ttls, group } = await partsWithLongLock();
    expect(ttls.usedTtl).toBe(LONG);
    await clock.advance(group.quarantineFor(LONG) - group.now);
    expect(ttls.usedTtl).toBe(LONG);
  });

  it('becomes that of the shorter ones when the long lock must have ended', async () => {
    const parts = await partsWithLongLock();
    await takeShortLocks(parts, 10);
    expect(parts.ttls.usedTtl).toBe(SHORT);
    await clock.advance(20_000);
    expect(parts.ttls.usedTtl).toBe(0);
  });
});

describe('GuardRounds', () => {
  it('reads a server whose data is unknown once more, and then no earlier than planned', async () => {
    const [a] = servers;
    const parts = new GuardParts(clock, servers);
    const act = () => parts.rounds.actOn(parts.reportsOf([a]), clock.read());
    expect(await act()).toBe(0);
    // Too few servers answer to choose a quarantine.
    expect(await act()).toBeUndefined();
  });

  it('knows that it held a lock when it first saw new data', () => {
    const [a, b] = servers;
    for (const server of servers) server.mark();
    const parts = new GuardParts(clock, servers);
    const attempt = parts.group.beginAttempt();
    parts.read();
    expect(parts.identityOf(a).markerChangedWhileHolding).toBe(false);
    a.mark();
    parts.read();
    expect(parts.identityOf(a).markerChangedWhileHolding).toBe(true);
    parts.group.abandon(attempt);
    b.mark();
    parts.read();
    expect([a, b].map((server) => parts.identityOf(server).markerChangedWhileHolding)).toEqual([true, false]);
  });

  it('lets an attempt count although the identity of the masters is being checked again', async () => {
    for (const server of servers) server.mark();
    const parts = new GuardParts(clock, servers);
    const reports = parts.read();
    const attempt = parts.group.beginAttempt();
    for (const identity of parts.group.records) identity.check();
    await parts.rounds.actOn(new Map([...reports].slice(0, 1)), clock.read());
    expect(parts.group.voting).toBeLessThan(2);
    expect(parts.group.confirm(attempt)).toBe(true);
  });
});
