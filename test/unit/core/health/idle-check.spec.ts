import { describe, expect, it } from '@jest/globals';
import { IdleCheck } from '../../../../lib/core/health/idle-check.js';
import { Rig } from '../../support/rig.js';
import { hangs, obeys, refused, says } from '../../support/scripted-master.js';

describe('IdleCheck', () => {
  it('lets a process that takes no lock notice masters that hang, and that answer again', async () => {
    const rig = new Rig();
    const check = new IdleCheck(rig.clock, () => rig.redlock.checkMasters());
    check.begin();
    await rig.clock.advance(5_000);
    rig.script(2, hangs);
    await rig.clock.advance(15_000);
    expect(rig.silences).toEqual(['m1', 'm2']);
    expect(rig.redlock.status().canVote).toBe(false);
    rig.scriptAll(obeys);
    await rig.clock.advance(5_000);
    expect(rig.redlock.status().canVote).toBe(true);
    expect(rig.keys).toEqual([0, 0, 0]);
    check.end();
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('lets a process that takes no lock notice masters that refuse writes, and that work again', async () => {
    const rig = new Rig();
    const check = new IdleCheck(rig.clock, () => rig.redlock.checkMasters());
    check.begin();
    rig.script(2, says(refused));
    await rig.clock.advance(5_000);
    expect(rig.redlock.status().masters.map(({ state }) => state)).toEqual(['refused', 'refused', 'voting']);
    rig.scriptAll(obeys);
    await rig.clock.advance(5_000);
    expect(rig.redlock.status().canVote).toBe(true);
    check.end();
  });
});
