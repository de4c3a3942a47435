import { describe, expect, it } from '@jest/globals';
import { type Marker, MARKER_FIELDS, markerFrom } from '../../../../lib/redis/guard/marker.js';
import { ttlInUse } from '../../../../lib/redis/guard/ttls-in-use.js';

function marker(announced: number, known: number): Marker {
  const fields: Record<string, string> = { nonce: 'n', ttls: announced ? `${announced}:1000` : '', known: `${known}` };
  return markerFrom(
    MARKER_FIELDS.map((field) => fields[field] ?? ''),
    0,
  )!;
}

describe('ttlInUse', () => {
  it('is the largest announced ttl if all other masters were read', () => {
    const others = [marker(2_000, 30_000), marker(0, 30_000)];
    expect(ttlInUse(others, { masters: 3, ttl: 1_000 })).toBe(2_000);
  });

  it('is the largest ttl ever announced to all if another one was not read: a lock may have been announced there only', () => {
    const others = [marker(2_000, 30_000), marker(0, 20_000)];
    expect(ttlInUse(others, { masters: 4, ttl: 1_000 })).toBe(30_000);
  });

  it('is the `ttl` option at least', () => {
    expect(ttlInUse([marker(0, 0), marker(0, 0)], { masters: 3, ttl: 1_000 })).toBe(1_000);
  });
});
