import { describe, expect, it } from '@jest/globals';
import { measureRoundTrips, warningOfRoundTrips } from '../../../../lib/core/health/round-trip.js';
import { granted } from '../../support/scripted-master.js';
import { Rig } from '../../support/rig.js';

describe('A warning of a short masterTimeout', () => {
  it.each<[string, number[], string | undefined]>([
    ['nothing is slow', [1, 2, 49.9], undefined],
    ['nothing was measured', [], undefined],
    [
      'a minority is slow',
      [1, 2, 80.2],
      "masterTimeout (50 ms) is too short: m3 in 81 ms at the fastest, so their votes do not count; set masterTimeout to '250ms' or more",
    ],
    [
      'a majority is slow',
      [1, 50, 90],
      "masterTimeout (50 ms) is too short: m2 in 50 ms, m3 in 90 ms at the fastest, so no lock can be taken; set masterTimeout to '300ms' or more",
    ],
  ])('has the numbers and the value to set: %s', (_, fastest, text) => {
    const trips = fastest.map((time, i) => ({ master: `m${i + 1}`, fastest: time }));
    expect(warningOfRoundTrips(trips, 50, 3)).toBe(text);
  });
});

describe('The measurement of round trips', () => {
  it('asks a fast master once, a slow one three times, and one without a connection never', async () => {
    const rig = new Rig({ masters: 3 });
    const [fast, slow, dead] = rig.masters;
    dead!.trouble = { kind: 'unreachable', reason: 'gone', sent: false };
    const asked = new Map<string, number>();
    const delays = [90, 60, 70];
    for (const master of [fast!, slow!]) {
      master.ask = (_, reply) => {
        const times = asked.get(master.name) ?? 0;
        asked.set(master.name, times + 1);
        rig.clock.schedule(master === slow ? (delays[times] ?? 0) : 1, () => reply(granted));
      };
    }
    const trips = rig.follow(measureRoundTrips(rig.masters, { key: 'k', clock: rig.clock, enough: 50 }));
    await rig.clock.advance(1_000);
    expect(trips.value).toEqual([
      { master: 'm1', fastest: 1 },
      { master: 'm2', fastest: 60 },
    ]);
    expect([...asked]).toEqual([
      ['m1', 1],
      ['m2', 3],
    ]);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
