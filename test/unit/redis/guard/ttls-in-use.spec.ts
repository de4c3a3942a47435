import { describe, expect, it } from '@jest/globals';
import { type Marker, MARKER_FIELDS, markerFrom } from '../../../../lib/redis/guard/marker.js';
import { ttlInUse, ttlKnownToOthers } from '../../../../lib/redis/guard/marker-writer.js';
import { GuardParts } from '../../support/guard-parts.js';
import { threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

function marker(announced: number, known: number): Marker {
  const fields: Record<string, string> = { nonce: 'n', ttls: announced ? `${announced}:1000` : '', known: `${known}` };
  return markerFrom(
    MARKER_FIELDS.map((field) => fields[field] ?? ''),
    0,
  )!;
}

// Protocol 8.3
describe('ttlInUse', () => {
  it('is the largest announced ttl if all other masters were read', () => {
    const others = [marker(2_000, 30_000), marker(0, 30_000)];
    expect(ttlInUse(others, 3, 1_000)).toBe(2_000);
  });

  it('is the largest ttl ever announced to all if another one was not read: a lock may have been announced there only', () => {
    const others = [marker(2_000, 30_000), marker(0, 20_000)];
    expect(ttlInUse(others, 4, 1_000)).toBe(30_000);
  });

  it('is the `ttl` option at least', () => {
    expect(ttlInUse([marker(0, 0), marker(0, 0)], 3, 1_000)).toBe(1_000);
  });
});

describe('ttlKnownToOthers', () => {
  /** The answer for the first of three servers, of which only some were read. */
  function knownToOthers(read: readonly number[], change: (servers: ReturnType<typeof threeServers>) => void): number {
    const clock = new TestClock();
    const servers = threeServers(clock);
    for (const [index, server] of servers.entries()) server.mark({ known: 10_000 * index });
    change(servers);
    const parts = new GuardParts(clock, servers);
    const reports = parts.read(read.map((index) => servers[index]!));
    return ttlKnownToOthers(parts.identityOf(servers[0]), reports, 7);
  }
  const nothing = (): void => undefined;

  it('is the largest that one of the others knows, whatever the server itself says', () => {
    expect(knownToOthers([0, 1, 2], nothing)).toBe(20_000);
    expect(knownToOthers([0, 1], ([a]) => a.change({ known: 90_000 }))).toBe(10_000);
  });

  it('does not count a server whose data is unknown', () => {
    expect(knownToOthers([0, 1, 2], ([, , c]) => c.change({ run: 'another' }))).toBe(10_000);
  });

  it('is what the caller knows where no other was read', () => {
    expect(knownToOthers([0], nothing)).toBe(7);
  });
});
