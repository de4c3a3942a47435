import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib/redlock/errors.js';
import {
  type AcquisitionObserver,
  type LockObserver,
  ObserverHub,
  PartObservers,
} from '../../../lib/operate/observer.js';
import { apart } from '../../../lib/runtime/system-clock.js';
import type { ElectionObserver } from '../../../lib/operate/leadership.js';
import type { JobObserver } from '../../../lib/operate/job-observer.js';
import { Rig } from '../support/rig.js';
import { throwing } from '../../support/throwing.js';

const unexpected = (error: unknown): void => {
  throw error;
};

const combine = (observers: readonly LockObserver[], failed: (error: unknown) => void): LockObserver =>
  new ObserverHub(failed).add(...observers).observer;

const broken = throwing(new Error('broken'));

describe('An observer of acquisitions', () => {
  /** Records what it observes. */
  function recorder(name: string, heard: string[]): LockObserver {
    const listener: AcquisitionObserver = {
      granted: ({ attempts, taken, waited }) => heard.push(`${name} granted ${attempts} ${taken} ${waited}`),
      failed: (error) => heard.push(`${name} failed ${(error as Error).name}`),
      ended: (held, loss) => heard.push(`${name} ended ${held} ${loss?.cause}`),
      within: (work) => {
        heard.push(`${name} within`);
        return work();
      },
    };
    return {
      acquiring: (resources, onHeld, kind) => {
        heard.push(`${name} acquiring ${resources.join()} ${onHeld} ${kind}`);
        return listener;
      },
    };
  }

  it('observes everything in order, in milliseconds, beside others', async () => {
    const heard: string[] = [];
    const rig = new Rig({ observer: combine([recorder('a', heard), {}, recorder('b', heard)], unexpected) });
    const lock = await rig.lock(['x', 'y']);
    expect(lock.observed(() => 'result')()).toBe('result');
    await rig.clock.advance(70);
    await lock.release();
    expect(heard).toEqual([
      ...['a acquiring x,y fail exclusive', 'b acquiring x,y fail exclusive', 'a granted 1 0 0', 'b granted 1 0 0'],
      ...['b within', 'a within', 'a ended 70 undefined', 'b ended 70 undefined'],
    ]);
  });

  it('disturbs neither locks nor other observers when it throws', async () => {
    const heard: string[] = [];
    const observers: LockObserver[] = [
      { acquiring: broken, masterAnswered: broken, lockLost: broken },
      { acquiring: () => ({ granted: broken, ended: broken }) },
      recorder('good', heard),
    ];
    const faults: unknown[] = [];
    const rig = new Rig({ masters: 1, observer: combine(observers, (error) => faults.push(error)) });
    const lock = await rig.lock('x');
    await rig.clock.advance(20_000);
    expect(lock.loss?.cause).toBe('expired');
    expect(heard).toEqual(['good acquiring x fail exclusive', 'good granted 1 0 0', 'good ended 9898 expired']);
    // acquiring, granted, the answer to it, ended, lockLost, and the answer to the release.
    expect([faults, rig.faults]).toEqual([Array(6).fill(new Error('broken')), []]);
  });

  it('disturbs nothing when it is asynchronous and rejects', async () => {
    const faults: unknown[] = [];
    const rejecting = async (): Promise<never> => Promise.reject(new Error('broken'));
    // As of a package with promises of its own.
    const thenable = { then: (_: unknown, reject: (error: Error) => void) => reject(new Error('broken')) };
    const observers: object[] = [
      { lockLost: rejecting, acquiring: () => ({ granted: rejecting, within: rejecting }) },
      { lockLost: () => thenable, acquiring: rejecting },
    ];
    const observer = combine(observers, (error) => faults.push(error));
    const rig = new Rig({ masters: 1, observer });
    const lock = await rig.lock('x');
    expect(lock.observed(() => 'result')()).toBe('result');
    await rig.clock.advance(20_000);
    expect(faults).toEqual(Array(5).fill(new Error('broken')));
  });

  it('is told that it gives its own observer too late', async () => {
    const faults: unknown[] = [];
    const late = { acquiring: async () => Promise.resolve({ granted: broken }) } as object;
    const rig = new Rig({ observer: combine([late], (error) => faults.push(error)) });
    await rig.lock('x');
    expect(faults).toEqual([new TypeError('it gave the next observer in a promise, which is too late')]);
  });

  it.each<[string, <T>(work: () => T) => T]>([
    ['throws before the work', () => broken()],
    ['throws after the work', (work) => (work(), broken())],
    ['runs the work twice', (work) => (work(), work())],
    ['does not run the work', () => undefined as never],
    ['runs it as it should', (work) => work()],
  ])('cannot change the result of the work when it %s', (_, within) => {
    const observers = [{ acquiring: () => ({ within }) }, recorder('good', [])];
    const faults: unknown[] = [];
    const listener = combine(observers, (error) => faults.push(error)).acquiring!([], 'fail', 'exclusive')!;
    let runs = 0;
    expect(listener.within!(() => (runs++, null))).toBeNull();
    expect(runs).toBe(1);
    const own = new Error('of the work');
    expect(() => listener.within!(throwing(own))).toThrow(own);
    expect(faults).not.toContain(own);
  });
});

describe('An observer of waits', () => {
  /** A process that holds, and another one that records what its calls wait for. */
  function processes() {
    const heard: string[] = [];
    const holder = new Rig({ instance: 'holder' });
    const waiting: LockObserver['waiting'] = (resources, by) =>
      heard.push(`${resources.join()} ${by?.instance} ${by?.since.getTime()}`);
    const other = holder.peer({ instance: 'other', observer: { waiting } });
    return { heard, holder, other };
  }

  it('hears once of each call for what it waits, and for whom', async () => {
    const { heard, holder, other } = processes();
    const since = holder.clock.read().wall;
    const lock = await holder.lock(['x', 'y'], { ttl: 30_000 });
    const calls = [other.acquire('x', { wait: 20_000 }), other.acquire(['y', 'z'], { wait: 20_000 })];
    await holder.clock.advance(10_000);
    expect(heard).toEqual([`x holder ${since}`, `y,z holder ${since}`]);
    await lock.release();
    await holder.clock.advance(1_000);
    await Promise.all(calls);
    expect(heard).toHaveLength(2);
  });

  it('hears of the holder that the masters named to the call before it in this process, or of none', async () => {
    const { heard, holder, other } = processes();
    const since = holder.clock.read().wall;
    await holder.lock('x', { ttl: 30_000 });
    await other.lock('y');
    const calls = [other.outcomeOf(other.acquire('x')), other.outcomeOf(other.acquire('y'))];
    await holder.clock.advance(10);
    calls.push(other.outcomeOf(other.acquire('x')));
    await holder.clock.advance(10_000);
    await Promise.all(calls);
    expect(heard.sort()).toEqual([`x holder ${since}`, `x holder ${since}`, 'y undefined undefined']);
  });

  it('hears of no holder of permits, nor of shared locks', async () => {
    const { heard, holder, other } = processes();
    await holder.lock('x', { permits: 1 });
    await holder.lock('y', { mode: 'shared' });
    const calls = [other.outcomeOf(other.acquire('x', { permits: 1 })), other.outcomeOf(other.acquire('y'))];
    await holder.clock.advance(10_000);
    await Promise.all(calls);
    expect(heard.sort()).toEqual(['x undefined undefined', 'y undefined undefined']);
  });
});

it('Without an observer of acquisitions no callback runs, and work runs as it is', async () => {
  const silent = combine([{ lockLost: () => {} }, {}], unexpected);
  expect(Object.keys(silent)).toEqual(['lockLost']);

  const rig = new Rig();
  const lock = await rig.lock('x');
  expect(lock.observed(() => 'done')()).toBe('done');
});

describe('ObserverHub', () => {
  it('reports what concerns a master outside of the context of a call, and what concerns the call inside', () => {
    const store = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const loss = new LockLostError(['a'], 'expired', []);
    const observer = new ObserverHub(undefined, apart).add({
      masterRefused: (...args) => void seen.push(store.getStore(), ...args),
      lockLost: (error) => void seen.push(store.getStore(), error),
    }).observer;
    store.run('a request', () => {
      observer.masterRefused?.('a', 'it is a replica');
      observer.lockLost?.(loss);
    });
    expect(seen).toEqual([undefined, 'a', 'it is a replica', 'a request', loss]);
  });

  it('calls an observer that precedes the others first', () => {
    const seen: string[] = [];
    const hub = new ObserverHub().add({ masterFound: () => void seen.push('first') });
    hub.precede({ masterFound: () => void seen.push('second') }).observer.masterFound?.('a');
    expect(seen).toEqual(['second', 'first']);
  });

  it('implements the callbacks of its observers, and passes events to those that are added later, too', () => {
    const seen: string[] = [];
    const hub = new ObserverHub().add({ masterFound: (master) => void seen.push(`first ${master}`) });
    const { observer } = hub;
    observer.masterFound?.('a');
    hub.add({ masterFound: (master) => void seen.push(`second ${master}`) });
    observer.masterFound?.('b');
    expect(seen).toEqual(['first a', 'first b', 'second b']);
    expect(Object.keys(observer)).toEqual(['masterFound']);
    hub.add({ acquiring: () => undefined });
    expect(Object.keys(observer)).toEqual(['masterFound', 'acquiring']);
  });
});

const SKIP = { scheduledFor: new Date(0), at: new Date(0), reason: 'finished' } as const;

it('Combined observers of jobs disturb each other neither by an error nor by a rejection', async () => {
  const heard: string[] = [];
  const faults: unknown[] = [];
  const broken = {
    skipped: throwing(new Error('at once')),
    delayed: () => Promise.reject(new Error('later')),
  };
  const good: JobObserver = {
    skipped: (job, { reason }) => heard.push(`${job} ${reason}`),
    delayed: (job) => heard.push(`${job} delayed`),
  };
  const observers = new PartObservers('jobs', broken, (error) => faults.push((error as Error).message));
  observers.add({});
  observers.add(good);
  const combined = observers.beside({});
  combined.skipped('report', SKIP);
  combined.delayed('report', new Error('no quorum'));
  await Promise.resolve();
  expect(heard).toEqual(['report finished', 'report delayed']);
  expect(faults).toEqual(['at once', 'later']);
});

it('An observer of jobs or elections that was added twice stays once if its first registration is removed twice', () => {
  const lines: string[] = [];
  const observers = new PartObservers('elections', {}, unexpected);
  const observer: ElectionObserver = { elected: () => void lines.push('elected') };
  const remove = observers.add(observer);
  observers.add(observer);
  remove();
  remove();
  observers.beside({}).elected('a', 1, 0);
  expect(lines).toEqual(['elected']);
});
