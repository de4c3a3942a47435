import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { judgeStep, sampleOf, ServerClock } from '../../../../lib/redis/guard/server-clock.js';
import { GuardStage, type GuardStageOptions, placeOf } from '../../support/guard-stage.js';
import type { Process } from '../../support/guarded-servers.js';
import type { TestClock } from '../../support/test-clock.js';

const WINDOW = 10_000;
const ALLOWANCE = 12;

/** Wall clock of a server when the monotonic clock of this process begins. */
const EPOCH = 1_700_000_000_000;

/** A sample at a moment of the monotonic clock, from a server that is `ahead` and answers within `trip`. */
function sample(at: number, { ahead = 0, trip = 1 }: { readonly ahead?: number; readonly trip?: number } = {}) {
  const instant = (monotonic: number) => ({ monotonic, wall: 0 });
  return sampleOf(instant(at), instant(at + trip), EPOCH + at + ahead);
}

function clockWith(...moments: readonly number[]): ServerClock {
  const clock = new ServerClock(() => WINDOW);
  for (const moment of moments) clock.keep(sample(moment));
  return clock;
}

describe('ServerClock', () => {
  it('reports no movement of a clock that runs like the one of this process', () =>
    expect(clockWith(0, 5_000).movedForward(sample(9_000))).toBe(0));

  it('reports a step forward, less the time that the answers may have taken', () => {
    const moved = clockWith(0).movedForward(sample(1_000, { ahead: 100 }));
    expect(moved).toBeGreaterThan(95);
    expect(moved).toBeLessThanOrEqual(100);
  });

  it('does not take a slow answer for a step', () =>
    expect(clockWith(0).movedForward(sample(1_000, { trip: 5_000 }))).toBe(0));

  it('adds up small steps within a window', () => {
    const clock = new ServerClock(() => WINDOW);
    for (let i = 0; i < 6; i++) clock.keep(sample(i * 1_000, { ahead: i * 5 }));
    expect(clock.movedForward(sample(6_000, { ahead: 30 }))).toBeGreaterThan(ALLOWANCE);
  });

  it('compares with the samples of two windows, and with none from before', () => {
    const clock = new ServerClock(() => WINDOW);
    const spacing = WINDOW / 4;
    clock.keep(sample(0, { ahead: -1_000 }));
    for (let i = 1; i <= 7; i++) clock.keep(sample(i * spacing));
    expect(clock.movedForward(sample(7 * spacing + 1))).toBeGreaterThan(900);
    clock.keep(sample(8 * spacing));
    expect(clock.movedForward(sample(8 * spacing + 1))).toBe(0);
  });

  it('notices a clock that was set back and comes forward again', () => {
    const clock = clockWith(0);
    clock.keep(sample(3_000, { ahead: -60_000 }));
    expect(clock.movedForward(sample(6_000))).toBeGreaterThan(50_000);
  });

  it('does not confirm a step that only one of its samples shows: the clock of this process was ahead for a moment', () => {
    const clock = clockWith(0, 3_000);
    clock.keep(sample(6_000, { ahead: -30 }));
    expect(clock.movedForward(sample(9_000))).toBeGreaterThan(ALLOWANCE);
    expect(clock.isConfirmed(sample(9_000), ALLOWANCE)).toBe(false);
    expect(clock.isConfirmed(sample(9_000, { ahead: 100 }), ALLOWANCE)).toBe(true);
  });

  it('confirms a step that its only sample shows', () =>
    expect(clockWith(0).isConfirmed(sample(1_000, { ahead: 100 }), ALLOWANCE)).toBe(true));

  it('does not take a gradual correction for a step, however old the last sample is', () =>
    expect(clockWith(0).movedForward(sample(3_600_000, { ahead: 3_600_000 * 400e-6 }))).toBe(0));

  it('notices a step after a pause of ten seconds that would stay hidden after a pause of an hour', () =>
    expect(clockWith(0).movedForward(sample(10_000, { ahead: 30 }))).toBeGreaterThan(ALLOWANCE));

  it('reports a clock that was set back by more than the allowance', () => {
    expect(clockWith(0).movedBack(sample(1_000, { ahead: -100 }), ALLOWANCE)).toBe(true);
    expect(clockWith(0).movedBack(sample(1_000, { ahead: -5 }), ALLOWANCE)).toBe(false);
  });

  it('knows the movement since a moment only if it has a sample that is as old', () => {
    const clock = clockWith(5_000);
    expect(clock.movementSince(4_000, sample(9_000))).toBeUndefined();
    expect(clock.movementSince(6_000, sample(9_000))).toBeDefined();
  });

  it('compares a step with the latest sample, too: the others may have none that is older', () => {
    const clock = clockWith(0, 100, 200);
    const steps = clock.before(sample(300, { ahead: 1_000 }), ALLOWANCE);
    expect(steps.map(({ sent }) => sent)).toEqual([200, 100, 0]);
  });

  it('keeps a bounded number of samples, and drops the oldest ones first', () => {
    const clock = clockWith(...Array.from({ length: 100 }, (_, i) => i * 10_000));
    expect(clock.movementSince(500_000, sample(1_000_000))).toBeUndefined();
    expect(clock.movementSince(950_000, sample(1_000_000))).toBeDefined();
  });
});

// Protocol 8.11
describe('judge', () => {
  const moved = { min: 1_000, max: 1_002 };
  const unmoved = { min: -2, max: 2 };
  const three = { quorum: 2, allowance: ALLOWANCE };

  it('blames this process when a quorum of servers moved alike', () => {
    expect(judgeStep(moved, [{ min: 999, max: 1_003 }, unmoved], three)).toMatchObject({
      culprit: 'client',
      by: 1_002,
    });
    expect(judgeStep(moved, [{ min: 999, max: 1_003 }, undefined], three)).toMatchObject({ culprit: 'client' });
  });

  it('counts what a quorum shows if this process stood still again before the others answered', () => {
    const more = { min: 3_998, max: 4_003 };
    const last = { min: 3_999, max: 4_002 };
    expect(judgeStep(moved, [more, last], { ...three, latest: last })).toMatchObject({ culprit: 'client', by: 4_002 });
    expect(judgeStep(moved, [more, undefined], { ...three, latest: last })).toMatchObject({
      culprit: 'client',
      by: 4_002,
    });
    expect(judgeStep(moved, [more, { min: 999, max: 1_003 }], three)).toMatchObject({
      culprit: 'client',
      by: 1_002,
    });
  });

  it('blames the server when another server proves that only the first one moved', () => {
    expect(judgeStep(moved, [unmoved, unmoved], three)).toEqual({ culprit: 'server', by: 1_000 });
    expect(judgeStep(moved, [unmoved, undefined], three)).toEqual({ culprit: 'server', by: 1_000 });
  });

  it('blames the server when another server did not move, whichever other amount a third one moved by', () => {
    const further = { min: 2_000, max: 2_002 };
    expect(judgeStep(moved, [unmoved, further], three)).toEqual({ culprit: 'server', by: 1_000 });
    expect(judgeStep(moved, [{ min: 300, max: 302 }, undefined], three)).toMatchObject({ culprit: 'either' });
  });

  it.each([
    ['has an earlier sample', undefined],
    ['answered fast enough', { min: -50, max: 1_100 }],
  ])('blames one of the two when no other server %s', (_, answer) => {
    expect(judgeStep(moved, [answer, answer], three)).toEqual({ culprit: 'either', min: 1_000, by: 1_002 });
    expect(judgeStep(moved, [unmoved, answer], three)).toEqual({ culprit: 'server', by: 1_000 });
  });

  it('does not take a server that moved by another amount for the same step', () =>
    expect(judgeStep(moved, [{ min: 300, max: 302 }, unmoved], three)).toMatchObject({ culprit: 'server' }));

  it('needs a quorum of five servers to blame this process', () => {
    const five = { quorum: 3, allowance: ALLOWANCE };
    expect(judgeStep(moved, [moved, unmoved, unmoved, unmoved], five)).toMatchObject({ culprit: 'server' });
    expect(judgeStep(moved, [moved, moved, unmoved, unmoved], five)).toMatchObject({ culprit: 'client' });
  });
});

describe('StepJudge', () => {
  let stage: GuardStage;
  let clock: TestClock;
  let servers: GuardStage['servers'];
  let process: Process;

  async function use(options: GuardStageOptions = {}): Promise<void> {
    stage = new GuardStage(options);
    ({ clock, servers, process } = stage);
    await process.connectAll();
  }

  beforeEach(async () => {
    await use();
    await clock.advance(3_000);
    await stage.rounds(1, 1_000);
  });
  afterEach(() => process.guard.close());

  const reasons = (): (string | undefined)[] => servers.map(({ marker }) => marker?.reason);

  it('judges the next answer, too, if a server whose clock has jumped does not answer the question about it', async () => {
    const [a] = servers;
    a.ahead += 9_000;
    a.isDown = true;
    expect(stage.sample(0)).toBe(false);
    await clock.advance(1_500);
    a.isDown = false;
    expect(stage.sample(0)).toBe(false);
    await clock.settle();
    expect(a.marker?.reason).toMatch(/jumped/);
  });

  it('lets no grant of a server count while its step is judged', async () => {
    const identity = stage.identity(0);
    const { epoch } = identity;
    servers[0].ahead += 9_000;
    expect(stage.sample(0)).toBe(false);
    expect(identity.withholdsVotes).toBe(true);
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'its clock has moved' });
    await clock.settle();
  });

  it('ends the locks of this process once, however many servers show that its clocks stood still', async () => {
    stage.standStill(2_000);
    expect([0, 1, 2].map((index) => stage.sample(index))).toEqual([false, false, false]);
    await clock.advance(100);
    expect(process.lags).toHaveLength(1);
  });

  it('ends the locks of this process by all of it if its clocks stand still again while the first time is judged', async () => {
    stage.standStill(2_000);
    for (const index of [0, 1, 2]) stage.sample(index);
    stage.standStill(2_000);
    await clock.settle();
    stage.standStill(2_000);
    await stage.rounds(3, 100);
    expect(stage.lagged).toBeGreaterThanOrEqual(6_000);
    expect(stage.lagged).toBeLessThan(6_050);
    expect(reasons()).toEqual(['', '', '']);
  });

  it.each([3_000, 500])(
    'accuses no server whose answer about a standstill comes after another one of %i ms',
    async (milliseconds) => {
      stage.standStill(3_000);
      servers[1].isDown = true;
      const answer = process.links[0]!.hold();
      stage.sample(0);
      await clock.settle();
      stage.standStill(milliseconds);
      answer();
      await clock.advance(200);
      await stage.rounds(8, 200, [0, 2]);
      expect(reasons()).toEqual(['', '', '']);
      expect(stage.lagged).toBeGreaterThanOrEqual(3_000 + milliseconds);
    },
  );

  it('takes two servers whose clocks were set by different amounts for no standstill of its own', async () => {
    servers[0].ahead += 3_000;
    servers[1].ahead += 5_000;
    await stage.rounds(4, 500);
    expect(process.lags).toEqual([]);
  });

  it('forgets no standstill while too few other servers answer', async () => {
    const [, b, c] = servers;
    b.isDown = c.isDown = true;
    stage.standStill(8_000);
    await stage.rounds(10, 500, [0]);
    expect(stage.lagged).toBe(0);
    c.isDown = false;
    await stage.rounds(1, 100, [0]);
    expect(stage.lagged).toBeGreaterThanOrEqual(8_000);
  });

  it('counts once what one server alone can show, and what another one shows later', async () => {
    const [, b, c] = servers;
    stage.identity(1).clock.forget();
    c.isDown = true;
    stage.standStill(8_000);
    await stage.rounds(1, 100, [0]);
    expect(process.lags).toHaveLength(1);
    c.isDown = false;
    for (let round = 0; round < 3; round++) {
      for (const index of [0, 1, 2]) expect(stage.sample(index)).toBe(true);
      await clock.advance(100);
    }
    expect(process.lags).toHaveLength(1);
    expect(stage.lagged).toBeGreaterThanOrEqual(8_000);
    expect([process.votes, b.marker?.reason]).toEqual([[true, true, true], '']);
  });

  it.each([1, 2])('forgets none of %i standstills that it notices by another server later', async (times) => {
    for (let time = 0; time < times; time++) {
      process.lags.length = 0;
      stage.identity(1).clock.forget();
      stage.standStill(8_000);
      servers[2].isDown = true;
      for (const index of [0, 1, 0, 1]) await stage.rounds(1, 500, [index]);
      servers[2].isDown = false;
      for (const index of [2, 0, 1]) await stage.rounds(1, 100, [index]);
      expect(stage.lagged).toBeGreaterThanOrEqual(8_000);
      await clock.advance(60_000);
      await stage.rounds(1, 1_000);
    }
  });

  it('counts once what one server showed alone and the others show with a second standstill', async () => {
    stage.standStill(3_000);
    stage.sample(0);
    servers[0].isDown = true;
    stage.standStill(1_000);
    await stage.rounds(3, 100, [1, 2]);
    expect(stage.lagged).toBeGreaterThanOrEqual(4_000);
    expect(stage.lagged).toBeLessThan(4_050);
  });

  it('relies on no announcement of a ttl from before a standstill', async () => {
    const identity = stage.identity(0);
    const sent = clock.read();
    await process.guard.announceTtl(9_000);
    identity.confirmTtl(9_000, sent);
    await clock.advance(10);
    const announced = servers.map(({ beats }) => beats.length);
    stage.standStill(5_000);
    await stage.rounds(1, 100, [0]);
    expect(process.lags).toHaveLength(1);
    expect(identity.knewTtl(9_000, clock.read())).toBe(false);
    // Answers that were under way.
    identity.confirmTtl(9_000, sent);
    identity.noteComparison(identity.replid, sent);
    expect(identity.knewTtl(9_000, clock.read())).toBe(false);
    expect(identity.historyToCompare(clock.read())).toBe(identity.replid);
    await process.guard.announceTtl(9_000);
    expect(servers.map(({ beats }) => beats.length)).toEqual(announced.map((count) => count + 1));
  });

  it('accuses no server to which its address leads back after a standstill', async () => {
    const [a] = servers;
    const { run, replid, fields } = a;
    Object.assign(a, { run: 'spare:run', replid: 'spare:history', fields: {} }).mark();
    process.connect(a);
    await stage.rounds(4, 250);
    stage.standStill(8_000);
    await stage.rounds(4, 250);
    expect(stage.lagged).toBeGreaterThanOrEqual(8_000);
    stage.lead(a, { ...placeOf(a), run, replid, fields });
    await stage.rounds(4, 250);
    expect(a.marker?.reason).not.toMatch(/jumped/);
    expect(process.votes).toEqual([true, true, true]);
  });

  it('notices a standstill in which all connections broke, and the servers are met one after the other', async () => {
    for (const server of servers) server.isDown = true;
    stage.standStill(5_000);
    for (const [index, server] of servers.entries()) {
      server.isDown = false;
      process.connect(server);
      await clock.advance(5);
      await stage.rounds(3, 5, [index]);
    }
    await clock.advance(100);
    expect(stage.lagged).toBeGreaterThanOrEqual(5_000);
    expect(process.votes).toEqual([true, true, true]);
  });

  it('doubts no server that it has met while it judged a standstill', async () => {
    const met = stage.identity(2);
    met.clock.forget();
    stage.standStill(3_000);
    await stage.rounds(1, 100, [0, 2]);
    expect(process.lags).toHaveLength(1);
    expect(stage.sample(2)).toBe(true);
    expect(met.reason).not.toMatch(/set back/);
  });

  it('doubts no server whose answer from before a standstill arrives after it was noticed', async () => {
    const [sent, { time }] = [clock.read(), servers[2]];
    stage.standStill(3_000);
    await clock.advance(10);
    await stage.rounds(1, 100, [0]);
    expect(process.lags).toHaveLength(1);
    expect(process.guard.sampled(stage.identity(2), sent, time)).toBe(false);
    expect(process.votes).toEqual([true, true, true]);
    expect(stage.sample(2)).toBe(true);
  });

  it('lets no grant count whose request was sent before the clocks of this process stood still', async () => {
    const { epoch } = stage.identity(1);
    stage.standStill(2_000);
    await stage.rounds(1, 100, [0]);
    expect(process.lags).toHaveLength(1);
    expect(stage.identity(1).epoch).toBeGreaterThan(epoch);
  });

  describe('beside clusters', () => {
    async function useWith(clusters: number, count = 3): Promise<void> {
      process.guard.close();
      await use({ clusters, count });
    }

    it.each([
      ['two clusters, and one server is dead', 2, 0],
      ['four clusters', 4, undefined],
    ])('needs a majority of the servers alone to notice a standstill: three and %s', async (_, clusters, dead) => {
      await useWith(clusters);
      await clock.advance(1_000);
      if (dead !== undefined) servers[dead]!.isDown = true;
      stage.standStill(5_000);
      await stage.rounds(1, 1_500, [1]);
      expect(stage.lagged).toBeGreaterThanOrEqual(5_000);
    });

    it.each([
      ['two servers, one of which is dead, and one cluster', 2, 1],
      ['three servers, two of which are dead, and two clusters', 3, 2],
    ])('lets a server vote again that no other can be compared with: %s', async (_, count, clusters) => {
      await useWith(clusters, count);
      await clock.advance(1_000);
      for (const server of servers.slice(1)) server.isDown = true;
      stage.standStill(5_000);
      const counts: boolean[] = [];
      for (let round = 0; round < 13; round++) {
        counts.push(stage.sample(0));
        await clock.advance(1_000);
      }
      expect([counts[0], counts.at(-1)]).toEqual([false, true]);
    });

    it.each([0, 8_000])('counts all of a standstill after a step of %i ms that may have been one', async (step) => {
      await useWith(1, 2);
      await stage.receive(10);
      servers[0].ahead += step;
      await stage.receive(6);
      process.lags.length = 0;
      servers[0].isDown = true;
      await stage.receive(2);
      stage.standStill(9_000);
      await stage.receive(20);
      expect(stage.lagged).toBeGreaterThanOrEqual(9_000);
    });
  });
});
