import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../../lib/core/lock.js';
import type { MasterRequest } from '../../../../lib/core/master.interface.js';
import {
  compareVersions,
  entryFrom,
  entryText,
  type StateEntry,
  type StateReport,
  type Version,
  type WriteStateRequest,
} from '../../../../lib/core/state/state-entry.js';
import type { StateReading } from '../../../../lib/core/state/lock-state.js';
import { Rig } from '../../support/rig.js';
import {
  after,
  type Behaviour,
  cutOff,
  hangs,
  obeys,
  only,
  says,
  type ScriptedMaster,
} from '../../support/scripted-master.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A master whose report of the state differs from the truth. */
const reporting = (change: (state: StateReport) => Partial<StateReport>): Behaviour =>
  only('open-state', (request, reply, { memory }) =>
    memory.ask(request, (answer) => {
      if (answer.kind !== 'granted' || !answer.state) reply(answer);
      else reply({ ...answer, state: { ...answer.state, ...change(answer.state) } });
    }),
  );

/** A master that lost its data before the state was first set. */
const hasLostData = reporting(() => ({ isFirst: false }));

const isBehind = reporting(({ time }) => ({ time: time - HOUR }));

function timesOf({ clocks }: StateReading): number[] {
  return clocks.map(({ time }) => time);
}

/** Executes the request, and the connection breaks before the answer comes. */
const obeysAndBreaks: Behaviour = (request, reply, { memory }) => memory.ask(request, () => reply(cutOff));

describe('The state of a lock', () => {
  let rig: Rig;

  /** Another process on the same masters. */
  let other: Rig;

  beforeEach(() => {
    rig = new Rig({ maxTtl: '1h' });
    other = new Rig({ maxTtl: '1h' }, rig);
  });

  const locked = (by: Rig = rig): Promise<Lock> => by.lock('job', { ttl: HOUR });
  const master = (number: number): ScriptedMaster => rig.masters[number - 1] as ScriptedMaster;

  /** The token of the last acquisition. */
  function lastToken(): string {
    return master(1).requests('acquire').at(-1)?.token ?? '';
  }

  /** Sends a request to all masters, as another process would. */
  async function askAll(request: MasterRequest): Promise<void> {
    for (const { memory } of rig.masters) memory.ask(request, () => undefined);
    await rig.clock.settle();
  }

  /** The lock of the other process, as if the keys of the first one had expired early on all masters. */
  async function usurped(): Promise<Lock> {
    await askAll({ op: 'release', keys: ['lock:job'], queues: ['q'], token: lastToken(), keepFor: 0, ttl: HOUR });
    return locked(other);
  }

  it('is what the last holder set, also without having read it, and may be cleared by null', async () => {
    const first = await locked();
    expect(await first.state.get()).toBeUndefined();
    await first.state.set({ page: 7 });
    expect(await first.state.get()).toEqual({ page: 7 });
    await first.release();
    const second = await locked(other);
    expect(await second.state.get<{ page: number }>()).toEqual({ page: 7 });
    await second.release();
    const third = await locked();
    await third.state.set(null);
    expect(await third.state.get()).toBeNull();
  });

  // Protocol 10.10
  it('is read without the lock, and is not settled while only one master has it', async () => {
    const lock = await locked();
    expect(await rig.redlock.inspector.readState('job')).toEqual({ value: undefined, settled: true });
    await lock.state.set('old');
    for (const number of [2, 3]) master(number).behaviour = only('write-state', says(cutOff));
    const outcome = await rig.outcomeAfter(1_000, lock.state.set('new'));
    expect(outcome.reason).toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    expect(await rig.redlock.inspector.readState('job')).toEqual({ value: 'new', settled: false });
    rig.scriptAll(obeys);
    expect(await lock.state.get()).toBe('new');
    expect(await rig.redlock.inspector.readState('job')).toEqual({ value: 'new', settled: true });
  });

  it('has the clocks of all masters if it is read with all, also of those that answer late', async () => {
    master(1).behaviour = isBehind;
    master(3).behaviour = only('open-state', after(20, obeys));
    const [soon, all] = [await locked(), await rig.lock('other', { ttl: HOUR })];
    const now = rig.clock.read().wall;
    expect(timesOf(await soon.state.read())).toEqual([now - HOUR, now]);
    const reading = all.state.read({}, { awaitsAll: true });
    await rig.clock.advance(20);
    expect(timesOf(await reading)).toEqual([now - HOUR, now, rig.clock.read().wall]);
  });

  it('is as old as time itself on a master that does not know when its data began', async () => {
    master(1).behaviour = hasLostData;
    expect(await (await locked()).state.read()).toMatchObject({ dataAge: rig.clock.read().wall });
  });

  it('is read without a master that does not answer in time', async () => {
    master(3).behaviour = only('open-state', hangs);
    const lock = await locked();
    const reading = lock.state.read({}, { awaitsAll: true });
    await rig.clock.advance(1_000);
    expect(await reading).toMatchObject({ value: undefined, isCertain: true });
  });

  it('names the masters if too few answer', async () => {
    const lock = await locked();
    rig.script(2, only('open-state', hangs));
    const outcome = rig.follow(lock.state.get());
    // Each missing answer is a reason to open it again, until the masters count as silent.
    await rig.clock.advance(1_000);
    expect(String(outcome.reason)).toBe(
      'QuorumUnavailableError: cannot open the state of "job": 2 of 3 masters must vote ' +
        '(m1: silent, not asked; m2: silent, not asked; m3: granted)',
    );
  });

  // Protocol 10.7
  it('cannot be set after another holder has opened it, although the lease has not ended', async () => {
    const first = await locked();
    const token = lastToken();
    await first.state.set('first');
    const second = await usurped();
    expect(await second.state.get()).toBe('first');
    await second.release();
    // The keys come back to the first holder, as a late extension could do.
    await askAll({ op: 'acquire', keys: ['lock:job'], token, ttl: HOUR, withdrawn: false });
    await expect(first.state.set('late')).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'owner-changed' });
    expect(first.signal.aborted).toBe(true);
    expect(await rig.redlock.inspector.readState('job')).toEqual({ value: 'first', settled: true });
  });

  // Protocol 10.6
  it('that one master alone has stored is found by a later holder, or never again after a get without it', async () => {
    const first = await locked();
    for (const number of [2, 3]) master(number).behaviour = only('write-state', says(cutOff));
    const failed = await rig.outcomeAfter(1_000, first.state.set('on m1'));
    expect(failed.reason).toBeDefined();
    rig.scriptAll(obeys);
    await first.release();
    // The first master does not take part.
    master(1).behaviour = only('open-state', says(cutOff), only('write-state', says(cutOff)));
    const second = await locked(other);
    expect(await rig.outcomeAfter(1_000, second.state.get())).toMatchObject({ value: undefined, reason: undefined });
    await second.release();
    rig.scriptAll(obeys);
    const third = await locked();
    expect(await third.state.get()).toBeUndefined();
  });

  // Protocol 10.6
  it('repeats the last attempt to set it, when it is read again', async () => {
    const lock = await locked();
    rig.scriptAll(only('write-state', obeysAndBreaks));
    const failed = await rig.outcomeAfter(1_000, lock.state.set('sent'));
    expect(failed.reason).toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    rig.scriptAll(obeys);
    expect(await lock.state.get()).toBe('sent');
    const writes = master(1).requests('write-state');
    const sequences = writes.map(({ version }) => version.sequence);
    expect(sequences).toEqual(sequences.map((_, index) => index));
    expect(sequences.length).toBeGreaterThan(2);
  });

  // Protocol 10.8
  it('is not called uncertain while masters are missing that may have lost nothing', async () => {
    const lock = await locked();
    master(1).behaviour = hasLostData;
    master(2).behaviour = only('open-state', hangs);
    const outcome = await rig.outcomeAfter(1_000, lock.state.get());
    expect(outcome.reason).toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    expect(String(outcome.reason)).toContain('it has lost data since the state was written');
  });

  it('is uncertain if so many masters have lost data that no quorum is left', async () => {
    const lock = await locked();
    master(1).behaviour = master(2).behaviour = hasLostData;
    await expect(lock.state.get()).rejects.toMatchObject({ code: 'LOCK_STATE_UNCERTAIN' });
  });

  // Protocol 10.5
  it('does not count an answer to the opening that this process reads too late', async () => {
    const lock = await locked();
    let stalls = 1;
    rig.scriptAll(
      only('open-state', (request, reply, { memory, clock }) =>
        memory.ask(request, (answer) => {
          // The process stands still until long after the time limit, with the answers in its socket.
          if (stalls-- > 0) clock.stall(HOUR / 2);
          reply(answer);
        }),
      ),
    );
    await lock.state.get();
    const opened = master(1).requests('open-state');
    expect(new Set(opened.map(({ ballot }) => ballot.number)).size).toBe(2);
  });

  // Protocol 10.5
  it('is opened above every ballot that was seen, however far the clock of that holder was ahead', async () => {
    const first = await locked();
    await first.state.set(1);
    rig.clock.stepWall(-10 * DAY);
    const second = await usurped();
    expect(await second.state.get()).toBe(1);
    const [write] = master(1).requests('write-state').slice(-1) as [WriteStateRequest];
    const earlier = master(1).requests('write-state')[0] as WriteStateRequest;
    expect(write.version.number).toBeGreaterThan(earlier.version.number);
  });

  it('carries out one operation after the other', async () => {
    const lock = await locked();
    const outcomes = await Promise.all([lock.state.set(1), lock.state.get(), lock.state.set(2), lock.state.get()]);
    expect(outcomes).toEqual([undefined, 1, undefined, 2]);
  });

  // Protocol 10.9
  it('counts as gone a day before the masters delete it, which is not earlier than for the value before it', async () => {
    const long = await rig.lock('long', { ttl: HOUR });
    await long.state.set('long', { expireAfter: '960h' });
    await long.state.set('short', { expireAfter: '72h' });
    const first = await locked();
    await first.state.set('old', { expireAfter: '72h' });
    await first.release();
    rig.clock.stall(2 * DAY - 1_000);
    expect(await rig.redlock.inspector.readState('job')).toMatchObject({ value: 'old' });
    rig.clock.stall(2_000);
    expect(await rig.redlock.inspector.readState('job')).toMatchObject({ value: undefined });
    const second = await locked();
    expect(await second.state.get()).toBeUndefined();
    rig.clock.stall(28 * DAY);
    expect(await rig.redlock.inspector.readState('long')).toMatchObject({ value: 'short' });
  });

  it('is kept for another period by each reading', async () => {
    for (let day = 0; day < 6; day++) {
      const lock = await locked();
      if (day === 0) await lock.state.set('kept', { expireAfter: '72h' });
      expect(await lock.state.get()).toBe('kept');
      await lock.release();
      rig.clock.stall(DAY);
    }
  });

  it('ends with the lock, and needs one on one resource', async () => {
    const both = await rig.lock(['a', 'b']);
    await expect(both.state.get()).rejects.toThrow(
      'state needs an exclusive lock on one resource, and this is a lock on 2 resources, "a", "b"',
    );
    const lock = await locked();
    await lock.release();
    await expect(lock.state.get()).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'released' });
    await expect(lock.state.set(1)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it.each<[string, unknown, string]>([
    ['undefined', undefined, 'state must be a value that JSON can represent: null, and not undefined, clears it'],
    ['a function', () => 1, 'state must be a value that JSON can represent: null, and not undefined, clears it'],
    ['a bigint', 1n, 'state must be a value that JSON can represent (Do not know how to serialize a BigInt)'],
    ['NaN', NaN, 'state must be a value that JSON can represent: null, and not undefined, clears it, got NaN'],
    ['a date that is none', new Date(NaN), 'state must be a value that JSON can represent'],
    ['17 KB', 'é'.repeat(8_192), 'state must have at most 16384 bytes as JSON, and has 16386: store it elsewhere'],
  ])('cannot be %s', async (_, value, message) => {
    const lock = await locked();
    await expect(lock.state.set(value)).rejects.toThrow(message);
    await expect(lock.state.get()).resolves.toBeUndefined();
  });

  it.each<[object, string]>([
    [{ onUncertain: 'latest' }, `onUncertain must be 'throw' or 'newest', got "latest"`],
    [{ expireAfter: '1h' }, 'expireAfter must be from 172800000 to 864000000000 ms, got "1h"'],
    [{ expires: '72h' }, 'options may hold known options only (onUncertain, expireAfter), got "expires"'],
  ])('refuses the options %j', async (options, message) => {
    const lock = await locked();
    await expect(lock.state.set(1, options)).rejects.toThrow(message);
  });

  it('costs nothing if it is not used', async () => {
    const lock = await locked();
    await lock.release();
    expect(new Set(master(1).asked.map(({ request }) => request.op))).toEqual(new Set(['acquire', 'release']));
  });
});

const promised = { number: 1_735_689_600_000_000, id: 'b-_' };
const version = { number: 1_735_689_599_000_000, id: 'a', sequence: 2 };
const times = { at: 1_735_689_600_000, life: 2_592_000_000 };

// Processes of different versions, and other implementations, read and write the same entries. Protocol 10.1.
describe('The entry of a state', () => {
  it.each<[string, string, StateEntry]>([
    ['a promise', '1735689600000000 b-_', { promised, stored: undefined }],
    [
      'a value, whose JSON may have lines',
      '1735689600000000 b-_ 1735689599000000 a 2 1735689600000 2592000000 g@5\n"1\n2"',
      { promised, stored: { version, ...times, generation: 'g@5', json: '"1\n2"' } },
    ],
    [
      'no value, in data without a generation',
      '1735689600000000 b-_ 1735689599000000 a 2 1735689600000 2592000000 \n',
      { promised, stored: { version, ...times, generation: '', json: '' } },
    ],
  ])('with %s is a text of fixed form', (_, text, entry) => {
    expect(entryText(entry)).toBe(text);
    expect(entryFrom(text)).toEqual(entry);
  });

  it('has a version that is compared by its number, then by its id, then by the number of the write', () => {
    const ascending: Version[] = [
      { number: 1, id: 'b', sequence: 9 },
      { number: 2, id: 'a', sequence: 5 },
      { number: 2, id: 'a', sequence: 6 },
      { number: 2, id: 'b', sequence: 0 },
      { number: 10, id: 'a', sequence: 0 },
    ];
    expect([...ascending].reverse().sort(compareVersions)).toEqual(ascending);
  });
});
