import { describe, expect, it } from '@jest/globals';
import { NO_WITNESS } from '../../../../lib/core/witness.interface.js';
import { Rig } from '../../support/rig.js';

const TTL = 20_000;

/** A process whose ttls are permitted up to a bound, and the times of its requests for permission. */
function asking(most: () => number) {
  const askedAt: number[] = [];
  const announceTtl = (ttl: number): number => {
    askedAt.push(rig.clock.now);
    return Math.min(ttl, most());
  };
  const rig: Rig = new Rig({ witness: { ...NO_WITNESS, announceTtl } });
  return { rig, askedAt };
}

describe('The ttl of a lock', () => {
  it('is announced again before each attempt of an acquisition that waits', async () => {
    const { rig, askedAt } = asking(() => TTL);
    await new Rig({}, rig).lock('a', { ttl: 29_000 });
    const acquired = rig.follow(rig.acquire('a', { ttl: TTL, wait: 60_000 }));
    await rig.clock.advance(40_000);
    expect(acquired.state).toBe('fulfilled');
    expect(acquired.at).toBeGreaterThan(TTL);
    expect(askedAt).toContain(acquired.at);
  });

  it('is cut if it could not be announced to the masters again', async () => {
    let most = TTL;
    const { rig } = asking(() => most);
    await new Rig({}, rig).lock('a', { ttl: 29_000 });
    const acquired = rig.follow(rig.acquire('a', { ttl: TTL, wait: 60_000 }));
    await rig.clock.advance(10_000);
    most = 1_000;
    await rig.clock.advance(20_000);
    const ttls = rig.masters[0]!.requests('acquire').map(({ ttl }) => ttl);
    expect(acquired.state).toBe('fulfilled');
    expect([ttls[1], ttls.at(-1)]).toEqual([TTL, 1_000]);
  });
});
