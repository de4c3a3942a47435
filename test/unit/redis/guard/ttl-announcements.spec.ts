import { beforeEach, describe, expect, it } from '@jest/globals';
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
    for (const server of servers) server.mark({ known: 0 });
    const { ttls } = partsThatRead();
    const permitted = [20_000, 15_000, 20_000].map(async (ttl) => ttls.announceTtl(ttl));
    expect(await Promise.all(permitted)).toEqual([20_000, 15_000, 20_000]);
    for (const { beats } of servers) expect(beats).toHaveLength(2);
  });

  it('does not wait for an announcement under way that is too small', async () => {
    for (const server of servers) server.mark({ known: 0 });
    const { ttls } = partsThatRead();
    const permitted = [15_000, 20_000].map(async (ttl) => ttls.announceTtl(ttl));
    expect(await Promise.all(permitted)).toEqual([15_000, 20_000]);
    for (const { marker } of servers) expect(marker).toMatchObject({ knownTtl: 20_000 });
  });

  it('asks no master for the `ttl` option, on which all processes agree', () => {
    for (const server of servers) server.mark({ known: 0 });
    expect(partsThatRead().ttls.announceTtl(10_000)).toBe(10_000);
  });
});

describe('TtlAnnouncements.smallestTtl', () => {
  it('is the smallest ttl that this process has used, and at first the `ttl` option', () => {
    for (const server of servers) server.mark();
    const { ttls } = partsThatRead();
    expect(ttls.smallestTtl).toBe(10_000);
    for (const ttl of [5_000, 2_000, 9_000]) void ttls.announceTtl(ttl);
    expect(ttls.smallestTtl).toBe(2_000);
  });
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
    for (const server of servers) server.mark({ known: LONG });
    const parts = partsThatRead();
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
