import { beforeEach, describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import type { Marker, Report } from '../../../lib/redis/identity.js';
import { Incarnation } from '../../../lib/redis/incarnation.js';

const MAX_TTL = 30_000;
const DRIFT = 302;
const FULL = MAX_TTL + DRIFT + 1_000;
const LONG_UP = 1_000_000;

describe('A client that meets a master', () => {
  let clock: ManualClock;
  let nonces: number;
  /** What the server keeps. */
  let marker: Marker | undefined;
  let server: { run: string | undefined; startedAt: number; wasPromoted: boolean; clockOffset: number };

  beforeEach(() => {
    clock = new ManualClock();
    nonces = 0;
    marker = undefined;
    server = { run: 'a'.repeat(40), startedAt: clock.read().monotonic - LONG_UP, wasPromoted: false, clockOffset: 0 };
  });

  function client(maxTtl = MAX_TTL): Incarnation {
    return new Incarnation(clock, { maxTtl, drift: maxTtl * 0.01 + 2 }, () => `nonce-${++nonces}`);
  }

  function report(): Report {
    const { run, startedAt, wasPromoted, clockOffset } = server;
    const { monotonic, wall } = clock.read();
    const identity = { version: '7.0.15', role: 'master', mode: 'standalone', eviction: undefined };
    const uptime = run === undefined ? 0 : Math.floor((monotonic - startedAt) / 1_000) * 1_000;
    return { ...identity, run, uptime, wasPromoted, time: wall + clockOffset, marker };
  }

  function shake(incarnation: Incarnation, delay = 0): void {
    const asked = clock.read();
    const seen = report();
    const assessment = incarnation.assess(seen);
    if (assessment.isNew) marker = assessment.marker;
    clock.stall(delay);
    incarnation.accept(assessment, seen, asked);
  }

  function met(maxTtl = MAX_TTL): Incarnation {
    const incarnation = client(maxTtl);
    shake(incarnation);
    return incarnation;
  }

  function restart(): void {
    server = { ...server, run: String(++nonces).repeat(40), startedAt: clock.read().monotonic };
    marker = undefined;
  }

  function remaining(incarnation: Incarnation): number {
    return incarnation.quarantined?.remaining ?? 0;
  }

  it('lets it vote at once if it has been up for long enough, and writes its marker', () => {
    const first = met();
    expect(first.quarantined).toBeUndefined();
    expect(marker).toMatchObject({ run: server.run, maxTtl: MAX_TTL });
    expect(first.nonce).toBe(marker!.nonce);
  });

  it('lets it wait no less because somebody sets the wall clock of the client forward', () => {
    server.startedAt = clock.read().monotonic;
    const incarnation = met();
    clock.stepWall(FULL);
    expect(remaining(incarnation)).toBe(FULL);
    clock.stall(FULL - 1);
    expect(remaining(incarnation)).toBe(1);
    clock.stall(1);
    expect(incarnation.quarantined).toBeUndefined();
  });

  it('lets it wait for the rest if it was started a short while ago', () => {
    server.startedAt = clock.read().monotonic - 10_900;
    expect(met().quarantined).toEqual({ reason: 'it was started a short while ago', remaining: FULL - 10_000 });
  });

  it('trusts a marker of the same run, and leaves it as it is', () => {
    met();
    const before = marker;
    expect(met().quarantined).toBeUndefined();
    expect(marker).toBe(before);
  });

  it('adopts the quarantine that the marker states', () => {
    restart();
    met();
    clock.stall(10_000);
    expect(remaining(met())).toBe(FULL - 10_000);
  });

  it('lets a server wait that was started again, whatever marker it has from before', () => {
    const first = met();
    const old = marker;
    restart();
    marker = old;
    shake(first);
    expect(remaining(first)).toBe(FULL);
    expect(marker).not.toEqual(old);
  });

  it('lets a promoted replica wait for the whole time, however long it has been up', () => {
    server.wasPromoted = true;
    expect(met().quarantined).toEqual({ reason: 'it was promoted from a replica', remaining: FULL });
    clock.stall(FULL);
    expect(met().quarantined).toBeUndefined();
  });

  it('lets a server wait for the whole time that does not tell who it is, once', () => {
    server.run = undefined;
    const first = met();
    expect(first.quarantined).toEqual({ reason: 'it does not tell since when it has run', remaining: FULL });
    clock.stall(FULL);
    shake(first);
    expect(first.quarantined).toBeUndefined();
    expect(met().quarantined).toBeUndefined();
  });

  it('agrees with clients that may ask who the server is, where it may not', () => {
    const { run } = server;
    const privileged = met();
    server.run = undefined;
    const restricted = met();
    expect(restricted.quarantined).toBeUndefined();
    server.run = run;
    shake(privileged);
    expect(privileged.nonce).toBe(restricted.nonce);
  });

  it('lets it wait when its data is gone, and a later client learns of that', () => {
    const first = met();
    marker = undefined;
    shake(first);
    expect(first.quarantined).toEqual({ reason: 'it lost its data', remaining: FULL });
    expect(remaining(met())).toBe(FULL);
  });

  it('lets it wait when somebody who did not know what was lost has written the marker', () => {
    const first = met();
    marker = undefined;
    expect(met().quarantined).toBeUndefined();
    shake(first);
    expect(first.quarantined).toEqual({ reason: 'its data was replaced', remaining: FULL });
  });

  it('does not wait longer than somebody who knew and let it wait for the whole time', () => {
    const [first, second] = [met(), met()];
    marker = undefined;
    shake(first);
    clock.stall(10_000);
    shake(second);
    expect(remaining(second)).toBe(FULL - 10_000);
    expect(second.nonce).toBe(first.nonce);
  });

  it('waits for its own locks where somebody with shorter ones knew but did not wait for them', () => {
    const [short, long] = [met(10_000), met(60_000)];
    marker = undefined;
    shake(short);
    shake(long);
    expect(remaining(long)).toBe(60_000 + 602 + 1_000);
  });

  it('raises the marker for longer locks; the others learn of it and go on', () => {
    const first = met();
    const before = marker!;
    const longer = met(60_000);
    expect(longer.quarantined).toBeUndefined();
    expect(marker).toMatchObject({ maxTtl: 60_000, from: before.from });
    expect(marker!.nonce).not.toBe(before.nonce);
    shake(first);
    expect(first.quarantined).toBeUndefined();
    expect(first.nonce).toBe(marker!.nonce);
  });

  it('lets the others wait for the longer locks when they are lost', () => {
    const first = met();
    met(60_000);
    shake(first);
    marker = undefined;
    shake(first);
    expect(remaining(first)).toBeGreaterThanOrEqual(60_000);
  });

  it('lets a server wait longer for longer locks', () => {
    restart();
    met();
    expect(remaining(met(60_000))).toBe(60_000 + 602 + 1_000);
  });

  it('lets a promoted server wait for longer locks only as long as they may be from before', () => {
    server.wasPromoted = true;
    met();
    clock.stall(200_000);
    expect(met(60_000).quarantined).toBeUndefined();
  });

  it('never lowers the marker', () => {
    met(60_000);
    const before = marker;
    met();
    expect(marker).toBe(before);
  });

  it('lets a suspect wait at once, and tells the others', () => {
    const [first, second] = [met(), met()];
    first.suspect('its clock jumped');
    expect(first.quarantined).toMatchObject({ reason: 'its clock jumped', remaining: MAX_TTL + DRIFT });
    shake(first);
    expect(remaining(first)).toBe(FULL);
    shake(second);
    expect(remaining(second)).toBe(FULL);
    clock.stall(FULL);
    shake(first);
    expect(first.quarantined).toBeUndefined();
  });

  it('does not forget what happens while it asks', () => {
    const first = met();
    const seen = report();
    const assessment = first.assess(seen);
    first.suspect('its clock jumped');
    first.accept(assessment, seen, clock.read());
    expect(first.distrusted).toBe('its clock jumped');
    expect(first.quarantined).toBeDefined();
    shake(first);
    expect(first.distrusted).toBeUndefined();
  });

  it('counts the quarantine on its own clock only', () => {
    restart();
    const first = met();
    server.clockOffset = 3_600_000;
    shake(first);
    clock.stall(FULL - 1);
    expect(remaining(first)).toBe(1);
    clock.stall(1);
    expect(first.quarantined).toBeUndefined();
  });

  it('waits no longer because the clock of the server was set back', () => {
    const first = met();
    server.clockOffset = -3_600_000;
    shake(first);
    expect(first.quarantined).toBeUndefined();
    expect(remaining(met())).toBeLessThanOrEqual(FULL);
  });

  it('counts from the answer, which may have been long under way', () => {
    restart();
    const first = client();
    shake(first, 5_000);
    expect(remaining(first)).toBe(FULL);
  });
});
