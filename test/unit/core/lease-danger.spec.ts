import { describe, expect, it } from '@jest/globals';
import type { MasterReport } from '../../../lib/core/errors.js';
import { Rig } from '../support/rig.js';
import { hangs, only, refused, says, tellsAfter, unreachable } from '../support/scripted-master.js';

const TTL = 9_000;

interface Danger {
  readonly resources: readonly string[];
  readonly remaining: number;
  readonly answers: readonly MasterReport[];
}

/** A rig, and the dangers that its locks were reported to be in. */
function observe(): { rig: Rig; dangers: Danger[] } {
  const dangers: Danger[] = [];
  const rig = new Rig({
    observer: { lockInDanger: (resources, remaining, answers) => dangers.push({ resources, remaining, answers }) },
  });
  return { rig, dangers };
}

describe('A lock whose extensions fail', () => {
  it('is in danger when less than a third of its ttl is left, which is reported once, with the replies', async () => {
    const { rig, dangers } = observe();
    await rig.lock('a', { ttl: TTL, extend: true });
    rig.script(2, only('extend', says(refused)));
    await rig.clock.advance(5_900);
    expect(dangers).toEqual([]);
    await rig.clock.advance(3_000);
    expect(dangers).toHaveLength(1);
    const [danger] = dangers;
    expect(danger).toMatchObject({ resources: ['a'] });
    expect(danger?.remaining).toBeLessThan(TTL / 3);
    expect(danger?.remaining).toBeGreaterThan(TTL / 3 - TTL / 10 - 100);
    expect(danger?.answers.map(({ master, answer }) => [master, answer?.kind])).toEqual([
      ['m1', 'refused'],
      ['m2', 'refused'],
      ['m3', 'granted'],
    ]);
  });

  it('is in danger a second time only after an extension that succeeded', async () => {
    const { rig, dangers } = observe();
    const lock = await rig.lock('a', { ttl: TTL, extend: true });
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(8_000);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(1_000);
    expect(lock.isHeld).toBe(true);
    expect(dangers).toHaveLength(1);
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(20_000);
    expect(dangers).toHaveLength(2);
    expect(rig.losses).toHaveLength(1);
  });

  it('is in danger if the holder’s own extension fails late', async () => {
    const { rig, dangers } = observe();
    const lock = await rig.lock('a', { ttl: TTL });
    rig.scriptAll(only('extend', says(unreachable)));
    await rig.clock.advance(8_000);
    await expect(lock.extend()).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    expect(dangers).toHaveLength(1);
  });
});

describe('The error of a lock that expires', () => {
  it('has what each master last replied', async () => {
    const { rig } = observe();
    await rig.lock('a', { ttl: TTL, extend: true });
    rig.script(2, only('extend', says(unreachable)));
    await rig.clock.advance(TTL);
    const [loss] = rig.losses;
    expect(loss?.message).toBe(
      'lost the lock on "a": its validity ended before a quorum of masters agreed to extend it ' +
        '(m1: unreachable, connection refused; m2: unreachable, connection refused; m3: granted)',
    );
    expect(loss).toMatchObject({ cause: 'expired' });
    expect(loss?.answers.map(({ answer }) => answer?.kind)).toEqual(['unreachable', 'unreachable', 'granted']);
  });

  it('names masters that hang, even if the first extension is still under way', async () => {
    const rig = new Rig({ masterTimeout: 2_000 });
    const lock = await rig.lock('a', { ttl: TTL });
    rig.script(2, only('extend', hangs));
    await rig.clock.advance(8_500);
    const extension = rig.follow(lock.extend());
    await rig.clock.advance(1_000);
    expect(extension.state).toBe('rejected');
    expect(rig.losses[0]?.message).toContain('(m1: no answer in time; m2: no answer in time; m3: granted)');
  });

  it('says that it was not extended if nothing was to extend it, and blames no master', async () => {
    const { rig, dangers } = observe();
    await rig.lock('a', { ttl: TTL });
    await rig.clock.advance(TTL);
    expect(rig.losses).toEqual([expect.objectContaining({ cause: 'expired', answers: [] })]);
    expect(rig.losses[0]?.message).toBe(
      'lost the lock on "a": it was not extended within its ttl of 9000 ms: pass `extend: true`, or a longer ttl',
    );
    expect(dangers).toEqual([]);
  });

  it('says so of the ttl of the last extension', async () => {
    const { rig } = observe();
    const lock = await rig.lock('a', { ttl: TTL });
    await lock.extend(4_000);
    await rig.clock.advance(TTL);
    expect(rig.losses[0]?.message).toContain('it was not extended within its ttl of 4000 ms');
  });

  it('says that the process stood still if that kept it from extending the lock', async () => {
    const { rig } = observe();
    const lock = await rig.lock('a', { ttl: TTL, extend: true });
    rig.clock.stall(TTL);
    expect(lock.isHeld).toBe(false);
    expect(rig.losses[0]?.message).toBe(
      'lost the lock on "a": this process was blocked or suspended, and did not extend it within its ttl of 9000 ms',
    );
  });

  it('forgets the replies to extensions from before one that succeeded', async () => {
    const { rig } = observe();
    await rig.lock('a', { ttl: TTL, extend: true });
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(5_000);
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(1_500);
    rig.clock.stall(TTL);
    await rig.clock.advance(0);
    expect(rig.losses[0]).toMatchObject({ cause: 'expired', answers: [] });
  });
});
