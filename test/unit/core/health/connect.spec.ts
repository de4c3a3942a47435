import { describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../../../lib/core/errors.js';
import { Rig } from '../../support/rig.js';
import type { ScriptedMaster } from '../../support/scripted-master.js';

const never = new Promise<void>(() => {});
const isDown = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'connect ECONNREFUSED', sent: false };
};
const isWrong = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'WRONGPASS', sent: false, isPermanent: true };
};
const isHung = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'still connecting', sent: false };
  master.connected = never;
};

function start(masters: number, bad: Record<number, (master: ScriptedMaster) => void>, timeout = 5_000) {
  const rig = new Rig({ masters });
  for (const [index, spoil] of Object.entries(bad)) spoil(rig.masters[Number(index)]!);
  return { rig, connected: rig.follow(rig.redlock.connect(timeout)) };
}

describe('connect()', () => {
  it('resolves at once when all masters are ready', async () => {
    const { rig, connected } = start(3, {});
    await rig.clock.settle();
    expect([connected.value, connected.at]).toEqual([[], 0]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('resolves at once with the problems when a minority is down', async () => {
    const { rig, connected } = start(3, { 1: isDown });
    await rig.clock.settle();
    expect(connected.at).toBe(0);
    expect(connected.value).toEqual([{ master: 'm2', answer: rig.masters[1]!.trouble }]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('waits a second for a hung minority', async () => {
    const { rig, connected } = start(3, { 2: isHung });
    await rig.clock.advance(999);
    expect(connected.state).toBe('pending');
    await rig.clock.advance(1);
    expect(connected.value!.map(({ master }) => master)).toEqual(['m3']);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
    [5, 3],
  ])('of %i masters fails when %i are down, and reports which and why', async (masters, down) => {
    const bad = Object.fromEntries(Array.from({ length: down }, (_, i) => [i, isDown]));
    const { rig, connected } = start(masters, bad, 3_000);
    await rig.clock.advance(3_000);
    expect(connected.at).toBe(3_000);
    expect(connected.reason).toBeInstanceOf(QuorumUnavailableError);
    const { message } = connected.reason as Error;
    const quorum = Math.floor(masters / 2) + 1;
    const noun = masters === 1 ? 'master' : 'masters';
    const each = Array.from({ length: down }, (_, i) => `m${i + 1}: unreachable, connect ECONNREFUSED`).join('; ');
    expect(message).toBe(`cannot start within 3000 ms: ${quorum} of ${masters} ${noun} must vote (${each})`);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('fails at once if waiting cannot help for a majority, and gives the others a second', async () => {
    const wrong = start(3, { 0: isWrong, 1: isWrong });
    await wrong.rig.clock.settle();
    expect(wrong.connected.at).toBe(0);
    expect((wrong.connected.reason as Error).message).toBe(
      'cannot start: 2 of 3 masters must vote (m1: WRONGPASS; m2: WRONGPASS)',
    );
    const hanging = start(3, { 0: isWrong, 1: isWrong, 2: isHung });
    await hanging.rig.clock.advance(999);
    expect(hanging.connected.state).toBe('pending');
    await hanging.rig.clock.advance(1);
    expect(String(hanging.connected.reason)).toContain('m3: unreachable, still connecting');
    for (const { rig } of [wrong, hanging]) expect(rig.clock.pendingTimers).toBe(0);
  });

  it('waits if waiting may help enough masters', async () => {
    const { rig, connected } = start(3, { 0: isWrong, 1: isDown });
    await rig.clock.advance(4_999);
    expect(connected.state).toBe('pending');
    rig.masters[1]!.becomeReady();
    await rig.clock.settle();
    expect(connected.value!.map(({ master }) => master)).toEqual(['m1']);
  });

  it('waits for a majority that comes up late', async () => {
    const { rig, connected } = start(3, { 0: isDown, 1: isDown });
    await rig.clock.advance(2_000);
    expect(connected.state).toBe('pending');
    rig.masters[1]!.becomeReady();
    await rig.clock.settle();
    expect(connected.at).toBe(2_000);
    expect(connected.value!.map(({ master }) => master)).toEqual(['m1']);
  });

  it('continues to wait if the majority is gone when the second for the minority ends', async () => {
    const { rig, connected } = start(3, { 2: isHung });
    await rig.clock.advance(500);
    isDown(rig.masters[0]!);
    await rig.clock.advance(1_000);
    expect(connected.state).toBe('pending');
    rig.masters[0]!.becomeReady();
    await rig.clock.advance(1_000);
    expect(connected.at).toBe(2_500);
  });

  it('is not necessary: open() does not wait', async () => {
    const rig = new Rig();
    rig.masters.forEach(isHung);
    void rig.redlock.open();
    await rig.clock.settle();
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
