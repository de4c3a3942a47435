import { beforeEach, describe, expect, it } from '@jest/globals';
import { ExclusiveKeys } from '../../../lib/kinds/exclusive.js';
import { ExtensionReplies } from '../../../lib/redlock/loss.js';
import { Mutex } from '../../../lib/redlock/mutex.js';
import { PendingReleases } from '../../../lib/redlock/round.js';
import { Keyspace } from '../../../lib/settings/keyspace.js';
import { askReserved } from '../../../lib/waiting/hand-off-reservation.js';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import { GRANTED, type MasterReply } from '../../../lib/masters/master.interface.js';
import { TIMED_OUT } from '../../../lib/redlock/server.js';
import { Rig } from '../support/rig.js';
import {
  cutOff,
  hangs,
  obeys,
  obeysAfter,
  obeysInSilence,
  only,
  refused,
  says,
  type ScriptedMaster,
  tellsAfter,
  unreachable,
} from '../support/scripted-master.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

describe('extend()', () => {
  it('renews the lock from now, with the same ttl as before', async () => {
    const lock = await rig.lock('a', { ttl: 1_000 });
    await rig.clock.advance(900);
    await lock.extend();
    expect(lock.remaining()).toBe(1_000 - 12);
    await rig.clock.advance(980);
    expect(lock.isHeld).toBe(true);
  });

  it('can lengthen the ttl, also for later extensions', async () => {
    const lock = await rig.lock('a', { ttl: 900, extend: true });
    await lock.extend('9s');
    expect(lock.remaining()).toBe(9_000 - 92);
    await rig.clock.advance(3_000);
    expect(rig.masters[0]!.requests('extend').map(({ ttl }) => ttl)).toEqual([9_000, 9_000]);
  });

  // Protocol 6.3
  it('to a shorter ttl shortens the validity even if the answers are lost', async () => {
    const lock = await rig.lock('a', { ttl: 9_000 });
    rig.scriptAll(only('extend', obeysInSilence));
    const extended = rig.follow(lock.extend(900));
    expect(lock.remaining()).toBe(900 - 11);
    await rig.clock.advance(60);
    expect([extended.reason, lock.isHeld]).toEqual([expect.any(QuorumUnavailableError), true]);
    await rig.clock.advance(900 - 11 - 60);
    expect([lock.isHeld, rig.keys]).toEqual([false, [0, 0, 0]]);
  });

  it('to a longer ttl that fails does not keep the lock from being extended in time', async () => {
    const lock = await rig.lock('a', { ttl: 900, extend: true });
    rig.scriptAll(says(refused));
    await rig.clock.advance(200);
    expect(await rig.outcomeOf(lock.extend(30_000))).toMatchObject({ reason: expect.any(QuorumUnavailableError) });
    rig.scriptAll(tellsAfter(0));
    await rig.clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
  });

  it('that fails reports which masters did not agree, and leaves the rest of the validity', async () => {
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.script(2, says(unreachable));
    await rig.clock.advance(100);
    const { reason } = await rig.outcomeOf(lock.extend());
    expect(reason).toBeInstanceOf(QuorumUnavailableError);
    expect(String(reason)).toContain('cannot extend the lock: 2 of 3 masters must vote (m1: unreachable');
    expect(lock.remaining()).toBe(1_000 - 12 - 100);
  });

  it('rejects with the loss if the validity ends in the meantime', async () => {
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.scriptAll(hangs);
    await rig.clock.advance(970);
    const extended = await rig.outcomeAfter(50, lock.extend());
    expect(extended).toMatchObject({ at: 988, reason: { cause: 'expired' } });
    expect(extended.reason).toBe(rig.losses[0]);
  });
});

const DOWN: MasterReply = { kind: 'unreachable', reason: 'gone', sent: false };

it.each([
  ['of a master that is not waited for later', false, DOWN, undefined, [TIMED_OUT, DOWN, GRANTED]],
  ['that refuses it', true, refused, GRANTED, [TIMED_OUT, refused, GRANTED]],
])('The reply to an extension %s stays until there is another one', (_, isOpen, second, third, last) => {
  const replies = new ExtensionReplies();
  const report = (answers: (MasterReply | undefined)[]) => answers.map((answer) => ({ master: 'm', answer }));
  replies.begin({ isOpen: false, report: report([DOWN, second, GRANTED]) });
  replies.begin({ isOpen, report: report([isOpen ? undefined : TIMED_OUT, isOpen ? undefined : DOWN, third]) });
  expect(replies.last).toEqual(report(last));
});

describe('release()', () => {
  // Protocol 7.1
  it('deletes the keys on all masters, and resolves when a quorum has answered', async () => {
    rig = new Rig({ masters: 5 });
    const lock = await rig.lock('a');
    rig.script(2, tellsAfter(40));
    const released = lock.release();
    expect([lock.isHeld, lock.remaining()]).toEqual([false, 0]);
    await released;
    expect([rig.clock.now, rig.keys]).toEqual([0, [0, 0, 0, 0, 0]]);
  });

  it('withdraws every request that may still be in flight, including the one before the last', async () => {
    rig.script(1, hangs);
    const lock = await rig.lock('a');
    await lock.extend();
    await lock.release();
    const asked = [...rig.masters[0]!.requests('acquire'), ...rig.masters[0]!.requests('extend')];
    expect(asked.map(({ withdrawn }) => withdrawn)).toEqual([true, true]);
  });

  it('is no loss: the signal does not abort', async () => {
    const lock = await rig.lock('a', { extend: true });
    const { signal } = lock;
    await lock.release();
    await rig.clock.advance(60_000);
    expect([signal.aborted, lock.signal.aborted, lock.loss]).toEqual([false, false, undefined]);
    expect(() => lock.assertHeld()).toThrow('it has been released');
    expect([rig.losses, rig.masters[0]!.times('extend')]).toEqual([[], []]);
  });

  // Protocol 7.2
  it('can be called twice: the second call is the first', async () => {
    const lock = await rig.lock('a');
    const [first, second] = [lock.release(), lock.release()];
    expect(second).toBe(first);
    await Promise.all([first, second, lock.release()]);
    expect(rig.masters[0]!.times('release')).toHaveLength(1);
  });

  // Protocol 7.2
  it.each([
    ['hang', hangs, 50],
    ['are down', says(unreachable), 0],
    ['lose the connection', says(cutOff), 0],
    ['refuse', says(refused), 0],
  ])('never rejects, even if all masters %s', async (_, behaviour, at) => {
    const lock = await rig.lock('a');
    rig.scriptAll(behaviour);
    expect(await rig.outcomeAfter(1_000, lock.release())).toMatchObject({ state: 'fulfilled', at });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('does not report a loss that was not noticed in time as a release', async () => {
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.clock.stall(1_000);
    await lock.release();
    expect(lock.signal.reason).toMatchObject({ cause: 'expired' });
    expect(rig.losses).toHaveLength(1);
  });

  // Protocol 7.1
  it('reaches masters that the acquisition reached and a later extension did not', async () => {
    const lock = await rig.lock('a', { extend: false });
    rig.script(1, says(unreachable));
    await lock.extend();
    rig.scriptAll(obeys);
    await lock.release();
    expect([rig.masters[0]!.requests('release').length, rig.keys]).toEqual([1, [0, 0, 0]]);
  });

  // Protocol 7.3
  it('is not undone by an extension in flight, which starts no timer either', async () => {
    const lock = await rig.lock('a', { ttl: 9_000, extend: true });
    rig.scriptAll(obeysAfter(40));
    await rig.clock.advance(3_010);
    expect(rig.masters[0]!.times('extend')).toEqual([3_000]);
    const released = await rig.outcomeAfter(100, lock.release());
    expect([released.state, rig.keys, rig.clock.pendingTimers]).toEqual(['fulfilled', [0, 0, 0], 0]);
    expect(rig.masters[0]!.requests('extend')[0]!.withdrawn).toBe(true);
    await rig.clock.advance(60_000);
    expect(rig.masters[0]!.times('extend')).toEqual([3_000]);
  });

  it('withdraws the request of a reserved key to the home master, although an extension came in between', async () => {
    const [home] = rig.masters as [ScriptedMaster];
    const { clock, masters } = rig;
    const kind = new ExclusiveKeys(new Keyspace('lock:'), ['a']);
    const lock = new Mutex(
      { masters, clock, timing: { masterTimeout: 50, driftFactor: 0.01 }, releases: new PendingReleases() },
      kind,
      'secret',
    );
    home.behaviour = hangs;
    const since = clock.read();
    const ticket = { queues: ['queue of a'], waiter: 'waiter', waited: 0, reserveFor: 50 };
    const request = (token: string) => kind.acquireOrQueue(token, 1_000, since, ticket);
    const first = { master: home, request, together: askReserved(home) };
    await lock.acquire(1_000, { primitive: kind, since, timeout: 50, first, last: home });
    await lock.extend(1_000);
    expect(home.requests('acquire').map(({ withdrawn }) => withdrawn)).toEqual([true]);
    home.behaviour = obeys;
    await lock.release(0);
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('covers the longest life that any of the keys can have, even after a failed change of the ttl', async () => {
    const lock = await rig.lock('a', { ttl: 1_000 });
    rig.script(2, hangs);
    await rig.outcomeAfter(50, lock.extend(20_000));
    rig.scriptAll(obeys);
    await lock.release();
    expect(rig.masters[2]!.requests('release')[0]!.ttl).toBe(20_000);
  });
});
