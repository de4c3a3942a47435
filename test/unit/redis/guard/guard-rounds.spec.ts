import { beforeEach, describe, expect, it } from '@jest/globals';
import { GuardParts } from '../../support/guard-parts.js';
import { threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
});

/** Reads all servers in one round whose answers take some milliseconds, and acts on them. */
async function readWithin(parts: GuardParts, trip: number): Promise<void> {
  const asked = clock.read();
  const reports = parts.reportsOf();
  clock.stall(trip);
  await parts.rounds.actOn(reports, asked);
}

describe('GuardRounds', () => {
  it('counts a quarantine from the arrival of the first report with its marker', async () => {
    const [a] = servers;
    for (const server of servers) server.quarantine(30_000);
    const parts = new GuardParts(clock, servers);
    await readWithin(parts, 150);
    expect(parts.identityOf(a).seenSince).toMatchObject({ monotonic: 150 });
    await readWithin(parts, 150);
    expect(parts.identityOf(a).seenSince).toMatchObject({ monotonic: 150 });
  });

  it('counts a wait without a marker from the arrival of the first report that shows the loss', async () => {
    const [a, ...others] = servers;
    for (const server of others) server.mark();
    const parts = new GuardParts(clock, servers);
    await readWithin(parts, 150);
    expect(parts.identityOf(a).unknownSince).toMatchObject({ monotonic: 150 });
  });

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
    for (const identity of parts.group.identities) identity.check();
    await parts.rounds.actOn(new Map([...reports].slice(0, 1)), clock.read());
    expect(parts.group.voting).toBeLessThan(2);
    expect(parts.group.confirm(attempt)).toBe(true);
  });
});
