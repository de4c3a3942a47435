import { describe, expect, it } from '@jest/globals';
import type { MasterReply } from '../../../lib/core/master.interface.js';
import { Rig } from '../support/rig.js';
import { granted, hangs, refused, says, unreachable } from '../support/scripted-master.js';

const heldFor = (remaining?: number): MasterReply => ({ kind: 'held', remaining });

async function inspect(answers: MasterReply[]) {
  const rig = new Rig({ masters: answers.length });
  rig.masters.forEach((master, i) => (master.behaviour = says(answers[i]!)));
  const { state, remaining } = await rig.redlock.inspector.inspect('a');
  return [state, remaining];
}

describe('inspect()', () => {
  it('reports that a resource is held, for how long, and the answer of each master', async () => {
    const rig = new Rig();
    await rig.lock('a', { ttl: 9_000 });
    await rig.clock.advance(1_000);
    expect(await rig.redlock.inspector.inspect('a')).toEqual({
      resource: 'a',
      state: 'held',
      remaining: 8_000,
      holder: undefined,
      waiting: 0,
      masters: ['m1', 'm2', 'm3'].map((master) => ({ master, answer: { ...heldFor(8_000), waiting: 0 } })),
    });
  });

  it('names the holder that most masters name, and how many processes wait at most', async () => {
    const rig = new Rig();
    const holder = { instance: 'web:1', since: new Date(5) };
    const earlier = { instance: 'web:1', since: new Date(4) };
    const answers = [{ holder: earlier, waiting: 1 }, { holder, waiting: 3 }, { holder }];
    rig.masters.forEach((master, i) => (master.behaviour = says({ kind: 'held', remaining: 5, ...answers[i] })));
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'held', holder, waiting: 3 });
  });

  it('reports that a resource is free', async () => {
    const rig = new Rig();
    expect(await rig.redlock.inspector.inspect('a')).toMatchObject({ state: 'free', remaining: 0 });
  });

  it.each<[string, MasterReply[], [string, number | undefined]]>([
    ['held by a quorum', [heldFor(5), heldFor(7), granted], ['held', 5]],
    ['held for an unknown time', [heldFor(), heldFor(), granted], ['held', undefined]],
    ['held by a minority', [heldFor(5), granted, granted], ['free', 0]],
    ['held by a minority of an even number', [heldFor(5), heldFor(6), granted, granted], ['free', 0]],
    ['one answers that it is free', [granted, unreachable, refused], ['unknown', undefined]],
    ['one answers that it is held', [heldFor(5), unreachable, refused], ['unknown', undefined]],
    ['one free, one held, one down', [granted, heldFor(5), unreachable], ['unknown', undefined]],
    ['no master answers', [unreachable, unreachable, unreachable], ['unknown', undefined]],
    ['held on one of one', [heldFor(5)], ['held', 5]],
  ])('reports the state of a resource with %s', async (_, answers, expected) =>
    expect(await inspect(answers)).toEqual(expected),
  );

  it('waits no longer than masterTimeout for a hung master', async () => {
    const rig = new Rig();
    rig.script(1, hangs);
    const inspection = rig.follow(rig.redlock.inspector.inspect('a'));
    await rig.clock.advance(100);
    expect(inspection.at).toBe(50);
    expect(inspection.value).toMatchObject({ state: 'free' });
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
