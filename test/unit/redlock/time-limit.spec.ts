import { describe, expect, it } from '@jest/globals';
import { TimeLimit } from '../../../lib/redlock/time-limit.js';
import { Rig } from '../support/rig.js';
import { type Behaviour, hangs, obeysAfter } from '../support/scripted-master.js';
import { TestClock } from '../support/test-clock.js';

const LIMIT = 50;

function begin() {
  const clock = new TestClock();
  const ended: number[] = [];
  const limit = new TimeLimit({ clock, limit: LIMIT, end: () => ended.push(clock.now) });
  return { clock, ended, limit };
}

// Protocol 4.1
describe('The time limit of a request', () => {
  it('ends in time if the process runs', async () => {
    const { clock, ended, limit } = begin();
    await clock.advance(200);
    expect([ended, limit.blocked, clock.pendingTimers]).toEqual([[LIMIT], 0, 0]);
  });

  it('begins when the turn ends in which the request was made', async () => {
    const { clock, ended, limit } = begin();
    clock.stall(80);
    await clock.advance(200);
    expect([ended, limit.blocked]).toEqual([[80 + LIMIT], 80]);
  });

  it.each([
    [51, 52],
    [80, 110],
    [100, 150],
    [600, 650],
  ])('grows once if its timer is late, and never by more than itself: blocked for %i ms', async (block, end) => {
    const { clock, ended } = begin();
    await clock.settle();
    clock.stall(block);
    await clock.advance(1_000);
    expect(ended).toEqual([end]);
  });

  it('does not grow again if the process is blocked again', async () => {
    const { clock, ended, limit } = begin();
    await clock.settle();
    clock.stall(80);
    await clock.advance(10);
    clock.stall(200);
    await clock.advance(0);
    expect([ended, limit.blocked]).toEqual([[290], 30]);
  });

  it('does not end before the process has read what arrived while it was blocked', async () => {
    const { clock, ended, limit } = begin();
    await clock.settle();
    clock.stall(80);
    clock.arrived.push(() => limit.cancel());
    await clock.advance(1_000);
    expect([ended, clock.pendingTimers]).toEqual([[], 0]);
  });
});

/** Leaves the process at the end of the turn, as a request that shares its command with others, and is then answered. */
function sentAfterTurn(roundTrip: number): Behaviour {
  return (request, reply, master) => master.clock.afterTurn(() => obeysAfter(roundTrip)(request, reply, master));
}

describe('A process that computes in the turn of its calls', () => {
  it('gets its locks, also without a wait', async () => {
    const rig = new Rig();
    rig.scriptAll(sentAfterTurn(6));
    const calls = ['a', 'b', 'c'].map((name) => rig.follow(rig.acquire(name, { wait: 0 })));
    rig.clock.stall(300);
    await rig.clock.advance(6);
    expect(calls.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
  });

  it('is named in the error if a master does not answer after that either', async () => {
    const rig = new Rig();
    rig.script(2, hangs);
    const call = rig.follow(rig.acquire('a', { wait: 0 }));
    rig.clock.stall(80);
    await rig.clock.advance(200);
    expect(call.at).toBe(130);
    expect(String(call.reason)).toContain('m1: no answer in time, while this process was blocked for 80 ms; m2');
  });
});
