import { expect, it } from '@jest/globals';
import { RoundTrip } from '../../../lib/masters/round-trip.js';

// Protocol 5.4
it('A key is reserved for three round trips, within 50 ms and a second', () => {
  const roundTrip = new RoundTrip();
  const reserved = (milliseconds: number): number => {
    roundTrip.note(milliseconds);
    return roundTrip.reservation;
  };
  expect(roundTrip.reservation).toBe(50);
  expect([reserved(1), reserved(160), reserved(600)]).toEqual([50, 480, 1_000]);
});

it('A longer round trip counts at once, a shorter one by degrees', () => {
  const roundTrip = new RoundTrip();
  const reservations = [200, 100, 100, 100].map((milliseconds) => {
    roundTrip.note(milliseconds);
    return roundTrip.reservation;
  });
  expect(reservations).toEqual([600, 450, 338, 300]);
});

it('The first request is measured, each that waits, and few of the others', () => {
  const roundTrip = new RoundTrip();
  expect(roundTrip.count(false)).toBe(true);
  expect(Array.from({ length: 8 }, () => roundTrip.count(true))).not.toContain(false);
  const others = Array.from({ length: 160 }, () => roundTrip.count(false));
  expect(others.filter(Boolean)).toHaveLength(10);
});
