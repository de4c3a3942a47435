import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SHORTEST_GUESS } from '../../../../lib/redis/guard/marker-writer.js';
import { GuardParts } from '../../support/guard-parts.js';
import { threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
});

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
    for (const [identity, report] of reports) await parts.writer.attend(identity, report, reports, clock.read());
    for (const { marker } of [a, c]) {
      expect(marker).toMatchObject({ storedTtl: 60_000, wait: parts.group.quarantineFor(60_000) });
    }
  });

  it('vetoes a new marker before it lengthens the quarantine', async () => {
    for (const server of servers) server.mark();
    const parts = new GuardParts(clock, servers);
    parts.read();
    const [a] = servers;
    parts.group.confirm(parts.group.beginAttempt());
    void parts.ttls.announceTtl(10_000);
    a.quarantine(10_000);
    const reports = parts.read();
    expect(parts.identityOf(a).mustExtendQuarantine).toBe(true);
    await parts.writer.attend(parts.identityOf(a), a.report(), reports, clock.read());
    expect(a.marker).toMatchObject({ isVetoed: true });
    expect(parts.identityOf(a).mustExtendQuarantine).toBe(true);
  });

  // Protocol 8.5
  it('lengthens the quarantine after the veto, and asks for another reading', async () => {
    for (const server of servers) server.mark();
    const parts = new GuardParts(clock, servers);
    parts.read();
    const [a] = servers;
    parts.group.confirm(parts.group.beginAttempt());
    a.quarantine(10_000);
    const attend = async (): Promise<boolean> => {
      const reports = parts.read();
      return parts.writer.attend(parts.identityOf(a), a.report(), reports, clock.read());
    };
    expect(await attend()).toBe(true);
    expect(await attend()).toBe(true);
    expect(a.beats).toMatchObject([{ lengthens: true }]);
    expect(await attend()).toBe(false);
  });

  it('ends the wait of a server once: it goes on to vote although its clock is set back', async () => {
    const [a] = servers;
    a.quarantine(10_000);
    const parts = new GuardParts(clock, servers);
    parts.read();
    const identity = parts.identityOf(a);
    const attend = () => parts.writer.attend(identity, a.report(), parts.read(), clock.read());
    clock.stall(10_001);
    parts.read();
    expect(identity.votes).toBe(true);
    const begins = jest.spyOn(identity.server, 'onVoting');
    a.ahead = -60_000;
    clock.stall(1_000);
    expect(await attend()).toBe(false);
    expect(identity.votes).toBe(true);
    expect(begins).not.toHaveBeenCalled();
  });

  it('ends a wait for this process only, because the clock by which it ended may be wrong', async () => {
    const [a, b, c] = servers;
    for (const server of [b, c]) server.mark();
    a.quarantine(10_000);
    const parts = new GuardParts(clock, servers);
    parts.read();
    clock.stall(10_001);
    a.ahead = -60_000;
    const reports = parts.read();
    const before = a.changes.length;
    expect(await parts.writer.attend(parts.identityOf(a), a.report(), reports, clock.read())).toBe(false);
    expect(parts.identityOf(a).votes).toBe(true);
    expect(a.changes).toHaveLength(before);
  });
});

describe('A process that knew the data of a master', () => {
  it('writes that later data there is not the first, and objects where another process has not known that', async () => {
    const [a, b] = servers;
    for (const server of servers) server.mark({ generation: `${server.name}@1`, first: 1 });
    const parts = new GuardParts(clock, servers);
    parts.read();
    for (const server of [a, b]) server.restart();
    b.quarantine(10_000, { generation: `new@${b.time}`, first: 'empty' });
    const reports = parts.read();
    await parts.writer.quarantine(parts.identityOf(a), a.report(), reports, clock.read());
    expect(a.marker).toMatchObject({ wasEmpty: false, isFirst: false });
    expect(b.marker).toMatchObject({ wasEmpty: true });
    expect(await parts.writer.attend(parts.identityOf(b), b.report(), reports, clock.read())).toBe(true);
    expect(b.marker).toMatchObject({ wasEmpty: false });
  });

  it('does not object to another nonce of the same generation, whose clock alone was in doubt', async () => {
    const [a] = servers;
    for (const server of servers) server.mark({ generation: `${server.name}@1`, first: 1 });
    const parts = new GuardParts(clock, servers);
    parts.read();
    a.quarantine(10_000, { nonce: 'another', generation: 'a@1', first: 1 });
    const reports = parts.read();
    await parts.writer.attend(parts.identityOf(a), a.report(), reports, clock.read());
    expect(a.marker).toMatchObject({ isFirst: true });
  });
});

describe('MarkerWriter.accuse', () => {
  it('waits for the largest ttl that any lock can have, although its announcement has ended by the clock that jumped', async () => {
    const [a] = servers;
    for (const server of servers) server.mark({ known: 30_000 });
    const parts = new GuardParts(clock, servers);
    parts.read();
    a.announce(30_000);
    a.ahead = 60_000;
    a.announce(1_000);
    await parts.writer.quarantineForClockJump(parts.identityOf(a), a.report(), 60_000);
    expect(a.marker!.from - a.time).toBe(parts.group.quarantineFor(30_000));
  });
});

describe('MarkerWriter.quarantine', () => {
  it('counts the wait that preceded the marker if a master stays unreadable', async () => {
    const [a, b] = servers;
    const parts = new GuardParts(clock, servers);
    const { group } = parts;
    const { maxTtl } = group.context.settings;
    const reports = parts.read([a, b]);
    const quarantine = (): Promise<boolean> =>
      parts.writer.quarantine(parts.identityOf(a), a.report(), reports, clock.read());
    clock.stall(group.quarantineFor(maxTtl) - 1);
    expect(await quarantine()).toBe(false);
    expect(a.marker).toBeUndefined();
    expect(parts.identityOf(a).quarantineAt(clock.read())).toMatchObject({ remaining: 1 + SHORTEST_GUESS });
    clock.stall(1);
    expect(await quarantine()).toBe(true);
    const { run, replid } = a;
    expect(a.marker).toMatchObject({ run, replid, isGuess: true, wait: SHORTEST_GUESS });
  });
});
