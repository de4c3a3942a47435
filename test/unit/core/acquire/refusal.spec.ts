import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, QuorumUnavailableError } from '../../../../lib/core/errors.js';
import type { MasterReply } from '../../../../lib/core/master.interface.js';
import { acquiring } from '../../../support/ask.js';
import { Rig, type RigOptions } from '../../support/rig.js';
import {
  after,
  type Behaviour,
  granted,
  hangs,
  held,
  obeys,
  only,
  refused,
  says,
  unreachable,
} from '../../support/scripted-master.js';

const noWait = { wait: 0 };

function rigOf(behaviours: readonly Behaviour[], options: RigOptions = {}): Rig {
  const rig = new Rig({ ...options, masters: behaviours.length });
  behaviours.forEach((behaviour, i) => (rig.masters[i]!.behaviour = behaviour));
  return rig;
}

/** Answers acquire requests late, and executes all other requests. */
function late(answer: MasterReply): Behaviour {
  return only('acquire', after(20, says(answer)));
}

/** Leaves keys on some masters, as a crashed holder does. */
async function leaveBehind(rig: Rig, masters: readonly number[]): Promise<void> {
  for (const i of masters)
    rig.masters[i]!.memory.ask(acquiring(['lock:a'], 'crashed', { ttl: 20_000 }), () => undefined);
  await rig.clock.settle();
}

// Protocol 4.6
describe('A call that does not wait', () => {
  it('fails as an outage when one master is down, one hangs and one has a leftover key', async () => {
    const rig = rigOf([says(unreachable), hangs, obeys]);
    await leaveBehind(rig, [2]);
    const call = rig.follow(rig.acquire('a', noWait));
    await rig.clock.advance(50);
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(String(call.reason)).toContain('m1: unreachable, connection refused; m2: no answer in time; m3: held');
    expect(call.at).toBe(50);
  });

  it('fails as an outage when that master is known to hang', async () => {
    const rig = rigOf([says(unreachable), hangs, obeys]);
    await leaveBehind(rig, [2]);
    for (let i = 0; i < 4; i++) {
      const call = rig.follow(rig.acquire('a', noWait));
      await rig.clock.advance(60);
      expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
    }
    expect(rig.silences).toEqual(['m2']);
  });

  it.each([
    ['another holder', held],
    ['a split vote', granted],
  ])('waits for the answer that distinguishes %s from an outage, and no longer', async (_, answer) => {
    const rig = rigOf([says(unreachable), late(answer), only('acquire', says(held))]);
    const call = rig.follow(rig.acquire('a', noWait));
    await rig.clock.advance(19);
    expect(call.state).toBe('pending');
    await rig.clock.advance(1);
    expect(call.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(call.at).toBe(20);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('waits for no answer when a quorum answers that the key is held', async () => {
    const rig = rigOf([only('acquire', says(held)), hangs, only('acquire', says(held))]);
    const call = rig.follow(rig.acquire('a', noWait));
    await rig.clock.settle();
    expect(call.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(call.at).toBe(0);
  });

  it('waits for no answer when no quorum can vote, whatever the answer is', async () => {
    const rig = rigOf([says(unreachable), hangs, only('acquire', says(refused))]);
    const call = rig.follow(rig.acquire('a', noWait));
    await rig.clock.settle();
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(call.at).toBe(0);
  });

  it('ends with the reason of its signal while it waits for the missing answer', async () => {
    const rig = rigOf([says(unreachable), hangs, only('acquire', says(held))]);
    const controller = new AbortController();
    const call = rig.follow(rig.acquire('a', { wait: 0, signal: controller.signal }));
    await rig.clock.advance(10);
    const reason = new Error('enough');
    controller.abort(reason);
    await rig.clock.settle();
    expect(call).toMatchObject({ state: 'rejected', reason, at: 10 });
    await rig.clock.advance(50);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});

describe('A call that waits', () => {
  it('queues at the home master without waiting for a missing answer', async () => {
    const rig = rigOf([says(unreachable), hangs, obeys]);
    rig.masters[0]!.trouble = unreachable;
    await leaveBehind(rig, [2]);
    const call = rig.follow(rig.acquire('a', { wait: 60 }));
    await rig.clock.settle();
    const queued = rig.masters.flatMap((master) => master.requests('acquire')).filter(({ queue }) => queue);
    expect(queued).toHaveLength(1);
    expect(rig.clock.now).toBe(0);
    await rig.clock.advance(200);
    expect(call.state).toBe('rejected');
  });

  it('leaves its queue when its budget ends, before it waits for a missing answer', async () => {
    const rig = rigOf([says(unreachable), hangs, obeys]);
    rig.masters[0]!.trouble = unreachable;
    await leaveBehind(rig, [2]);
    const call = rig.follow(rig.acquire('a', { wait: 20 }));
    await rig.clock.advance(100);
    expect(rig.masters.flatMap((master) => master.times('leave'))).toEqual([20]);
    expect(call.at).toBe(50);
  });

  it.each([60, 300, 2_000])('fails as an outage after %i ms without a quorum of answers', async (wait) => {
    const rig = rigOf([says(unreachable), hangs, obeys]);
    rig.masters[0]!.trouble = unreachable;
    await leaveBehind(rig, [2]);
    const call = rig.follow(rig.acquire('a', { wait }));
    const behind = rig.follow(rig.acquire('a', { wait }));
    await rig.clock.advance(wait + 100);
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(behind.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(call.at).toBeLessThanOrEqual(wait + 50);
  });

  it('fails as an outage when masters that had answered "held" are gone', async () => {
    const rig = rigOf([obeys, obeys, obeys]);
    await leaveBehind(rig, [0, 1, 2]);
    const call = rig.follow(rig.acquire('a', { wait: 2_000 }));
    await rig.clock.advance(10);
    const home = rig.masters.findIndex(({ memory }) => memory.queued > 0);
    rig.masters.forEach((master, i) => {
      if (i === home) return;
      master.behaviour = says(unreachable);
      master.trouble = unreachable;
    });
    await rig.clock.advance(2_100);
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
  });

  it('fails as held when only the home master was asked last, and the others had answered "held"', async () => {
    const rig = rigOf([obeys, obeys, obeys]);
    await leaveBehind(rig, [0, 1, 2]);
    const call = rig.follow(rig.acquire('a', { wait: 1_000 }));
    await rig.clock.advance(1_100);
    expect(call.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(String(call.reason)).not.toContain('not waited for');
    expect(call.at).toBe(1_000);
  });
});

describe('A call that waits only for other calls in its process', () => {
  it('fails without answers, and its message says why', async () => {
    const rig = new Rig();
    const first = rig.follow(rig.acquire('a', noWait));
    await rig.clock.settle();
    expect(first.state).toBe('fulfilled');
    const second = rig.follow(rig.acquire('a', { wait: 100 }));
    await rig.clock.advance(100);
    expect(second.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(second.reason).toMatchObject({
      message: '"a" is held or awaited by another call in this process: not acquired within 100 ms',
      answers: [],
    });
  });
});
