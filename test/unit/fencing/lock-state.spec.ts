import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../lib/locks/lock.js';
import type { MasterRequest } from '../../../lib/masters/master.interface.js';
import {
  entryFrom,
  entryText,
  type StateEntry,
  type StateReport,
  type WriteStateRequest,
} from '../../../lib/fencing/state-entry.js';
import { Rig } from '../support/rig.js';
import { type Behaviour, cutOff, hangs, obeys, only, says, type ScriptedMaster } from '../support/scripted-master.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A master that has a restart guard, and what it reports of the state. */
const reporting = (change: (state: StateReport) => Partial<StateReport>): Behaviour =>
  only('open-state', (request, reply, { memory }) =>
    memory.ask(request, (answer) => {
      if (answer.kind !== 'granted' || !answer.state) reply(answer);
      else reply({ ...answer, state: { ...answer.state, ...change(answer.state) } });
    }),
  );

/** A master that has voted since then with the data of now, in which the state was not written. */
const votingSince = (moment: number): Behaviour => reporting(() => ({ marker: `x@${moment}` }));

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

  // Protocol 10.9
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

  it('names the masters if too few answer', async () => {
    const lock = await locked();
    rig.script(2, only('open-state', hangs));
    const outcome = rig.follow(lock.state.get());
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
    await askAll({ op: 'acquire', keys: ['lock:job'], token, ttl: HOUR, since: 0, withdrawn: false });
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

  // Protocol 10.3
  it('needs all masters, if no quorum is left that has not lost it', async () => {
    const first = await locked();
    await first.state.set('set');
    await first.release();
    master(1).behaviour = master(2).behaviour = votingSince(5);
    master(3).behaviour = only('open-state', says(cutOff));
    const second = await locked();
    const outcome = await rig.outcomeAfter(1_000, second.state.get());
    expect(String(outcome.reason)).toContain('cannot open the state of "job": 3 of 3 masters must vote');
    master(3).behaviour = obeys;
    expect(await second.state.get()).toBe('set');
  });

  // Protocol 10.3 and 12.6
  it('is read with the time since when the newest master votes, if a majority has lost it', async () => {
    master(1).behaviour = votingSince(5_000);
    master(2).behaviour = votingSince(7_000);
    const lock = await locked();
    expect(await lock.state.read({ leavesUncertain: true })).toEqual({ value: undefined, since: 7_000 });
    // It is not written again, so that the next holder knows it, too.
    expect(master(1).requests('write-state')).toEqual([]);
    await lock.state.get();
    expect(master(1).requests('write-state')).toHaveLength(1);
  });

  it('is read without that time if only a minority has lost it', async () => {
    master(1).behaviour = votingSince(5_000);
    expect(await (await locked()).state.read()).toEqual({ value: undefined, since: undefined });
  });

  // Protocol 10.3
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
    const outcome = rig.follow(lock.state.get());
    await rig.clock.settle();
    await rig.clock.advance(1_000);
    expect(outcome).toMatchObject({ state: 'fulfilled', value: undefined });
    const opened = master(1).requests('open-state');
    expect(new Set(opened.map(({ number }) => number)).size).toBe(2);
  });

  // Protocol 10.3
  it('is opened above every number that was seen, however far the clock of that holder was ahead', async () => {
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

  // Protocol 10.8
  it('is gone after its life, which is not shorter than that of the value before it', async () => {
    const long = await rig.lock('long', { ttl: HOUR });
    await long.state.set('long', { expireAfter: '960h' });
    await long.state.set('short', { expireAfter: '72h' });
    const first = await locked();
    await first.state.set('old', { expireAfter: '72h' });
    await first.release();
    rig.clock.stall(3 * DAY - 1_000);
    expect(await rig.redlock.inspector.readState('job')).toMatchObject({ value: 'old' });
    rig.clock.stall(2_000);
    expect(await rig.redlock.inspector.readState('job')).toMatchObject({ value: undefined });
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
    [{ expireAfter: '1h' }, 'expireAfter must be from 172800000 to 864000000000 ms, got "1h"'],
    [{ expires: '72h' }, 'options may hold known options only (expireAfter), got "expires"'],
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

const version = { number: 1_735_689_599_000_000, sequence: 2 };
const life = 2_592_000_000;

// Processes of different versions, and other implementations, read and write the same entries. Protocol 10.1.
describe('The entry of a state', () => {
  it.each<[string, string, StateEntry]>([
    ['a claim', '1735689600000000', { claim: 1_735_689_600_000_000, stored: undefined }],
    [
      'a value, whose JSON may have lines',
      '1735689600000000 1735689599000000 2 2592000000 g@5\n"1\n2"',
      { claim: 1_735_689_600_000_000, stored: { version, life, marker: 'g@5', json: '"1\n2"' } },
    ],
    [
      'no value, in data without a marker',
      '1735689600000000 1735689599000000 2 2592000000 \n',
      { claim: 1_735_689_600_000_000, stored: { version, life, marker: '', json: '' } },
    ],
  ])('with %s is a text of fixed form', (_, text, entry) => {
    expect(entryText(entry)).toBe(text);
    expect(entryFrom(text)).toEqual(entry);
  });
});
