import { describe, expect, it } from '@jest/globals';
import { ConfirmedTtl } from '../../../../lib/redis/guard/confirmed-ttl.js';

const SENT = { monotonic: 1_000, wall: 1_700_000_000_000 };

// Protocol 8.9
describe('ConfirmedTtl', () => {
  it('covers no ttl before the server has confirmed one', () => {
    const confirmed = new ConfirmedTtl();
    confirmed.confirm(0, SENT);
    expect(confirmed.covers(1, SENT)).toBe(false);
  });

  it('covers a ttl up to the confirmed one, and no larger one', () => {
    const confirmed = new ConfirmedTtl();
    confirmed.confirm(10_000, SENT);
    expect(confirmed.covers(10_000, SENT)).toBe(true);
    expect(confirmed.covers(10_001, SENT)).toBe(false);
  });

  it('covers the ttl for 3.5 s after the announcement was sent, by both clocks of this process', () => {
    const confirmed = new ConfirmedTtl();
    confirmed.confirm(10_000, SENT);
    expect(confirmed.covers(10_000, { ...SENT, monotonic: SENT.monotonic + 3_500 })).toBe(true);
    expect(confirmed.covers(10_000, { ...SENT, monotonic: SENT.monotonic + 3_501 })).toBe(false);
    // The monotonic clock stands still while a machine is suspended.
    expect(confirmed.covers(10_000, { ...SENT, wall: SENT.wall + 3_501 })).toBe(false);
  });

  it('covers nothing once the data is replaced', () => {
    const confirmed = new ConfirmedTtl();
    confirmed.confirm(10_000, SENT);
    confirmed.forget();
    expect(confirmed.covers(10_000, SENT)).toBe(false);
  });
});
