import { describe, expect, it } from '@jest/globals';
import { overlaps } from '../../torture/check-exclusion.js';
import { type Check, check } from '../../torture/checker.js';
import type { Evidence, Phase, WorkerRecord } from '../../torture/evidence.js';
import type { Write } from '../../torture/register.js';
import type { Claim, TraceEvent } from '../../torture/trace.js';

const QUIET: Phase = { name: 'faults', from: 0, to: 1_000 };

/** The events of a worker that holds `a` as section `name`. */
function holder(name: string, from: number, until: number, more: Partial<Section> = {}): TraceEvent[] {
  const { asked = from - 1, token, keys = ['a'], mode = 'exclusive', permits, left } = more;
  return [
    { kind: 'granted', section: name, keys, mode, permits, asked, at: from, until },
    ...(token === undefined ? [] : [{ kind: 'token', section: name, at: from, token } as const]),
    ...(left === undefined ? [] : [{ kind: 'left', section: name, at: left, stalled: 0, why: 'released' } as const]),
  ];
}

interface Section extends Claim {
  readonly asked: number;
  readonly token: number;
  readonly left: number;
}

function worker(...events: (TraceEvent | readonly TraceEvent[])[]): WorkerRecord {
  return { name: 'w', events: events.flat(), exit: 0 };
}

function evidence(more: Partial<Evidence>): Evidence {
  return { kinds: [], keys: ['a'], phases: [QUIET], faults: [], workers: [], writes: [], ghosts: [], ...more };
}

function write(section: string, at: number, more: Partial<Write> = {}): Write {
  return { section, at, worker: 0, keys: ['a'], token: 1, accepted: true, ...more };
}

/** The checks that found something, and how often. */
function found(given: Partial<Evidence>): Partial<Record<Check, number>> {
  const verdict = Object.entries(check(evidence(given)));
  return Object.fromEntries(verdict.flatMap(([name, { length }]) => (length > 0 ? [[name, length]] : [])));
}

describe('The checker', () => {
  it('finds nothing in a correct run', () => {
    const events = [
      ...holder('1', 10, 100, { token: 1, left: 50 }),
      ...holder('2', 60, 160, { token: 2, left: 90 }),
      { kind: 'asked', op: 'acquire', id: 1, at: 5, within: 100 },
      { kind: 'settled', id: 1, at: 10, stalled: 0, how: 'granted' },
    ] as const;
    expect(found({ workers: [worker(events)], writes: [write('1', 40), write('2', 70)] })).toEqual({});
  });

  describe('overlaps', () => {
    const count = { 'overlaps between believers': 1 };

    it('are counted between two holders that believe at the same time', () =>
      expect(found({ workers: [worker(holder('1', 10, 100)), worker(holder('2', 99, 150))] })).toEqual(count));

    it('are counted inside a longer section, behind a shorter one', () => {
      const workers = [worker(holder('1', 10, 500), holder('2', 20, 30), holder('3', 400, 410))];
      expect(found({ workers })).toEqual({ 'overlaps between believers': 2 });
    });

    it('are counted between a shared holder and an exclusive one, in both orders', () => {
      const [first, second] = [holder('1', 10, 100, { mode: 'shared' }), holder('2', 50, 60)];
      expect(found({ workers: [worker(first, second)] })).toEqual(count);
      expect(found({ workers: [worker(holder('1', 10, 100), holder('2', 50, 60, { mode: 'shared' }))] })).toEqual(
        count,
      );
    });

    it('are counted inside a longer section of either mode, behind a shorter one of the other mode', () => {
      const workers = [
        worker(holder('1', 10, 50), holder('2', 20, 500, { mode: 'shared' }), holder('3', 400, 410)),
        worker(
          holder('4', 600, 800),
          holder('5', 610, 900, { mode: 'shared' }),
          holder('6', 700, 710, { mode: 'shared' }),
        ),
      ];
      expect(found({ workers })).toEqual({ 'overlaps between believers': 4 });
    });

    it('are not counted between shared holders', () => {
      const workers = [worker(holder('1', 10, 100, { mode: 'shared' }), holder('2', 50, 60, { mode: 'shared' }))];
      expect(found({ workers })).toEqual({});
    });

    it('are counted for several keys that have one in common', () => {
      const two = holder('1', 10, 100, { keys: ['a', 'b'] });
      expect(found({ keys: ['a', 'b'], workers: [worker(two, holder('2', 50, 60, { keys: ['b'] }))] })).toEqual(count);
    });

    it.each<[string, TraceEvent]>([
      ['gave up the lock', { kind: 'left', section: '1', at: 50, stalled: 0, why: 'released' }],
      ['noticed the loss', { kind: 'lost', section: '1', at: 50, stalled: 0, why: 'owner-changed' }],
      ['shortened its validity', { kind: 'looked', section: '1', at: 50, until: 50 }],
    ])('are not counted if the holder %s before', (_, event) =>
      expect(found({ workers: [worker(holder('1', 10, 100), event), worker(holder('2', 60, 70))] })).toEqual({}),
    );

    it('are counted if the holder looked and saw the lock extended', () => {
      const looked: TraceEvent = { kind: 'looked', section: '1', at: 90, until: 200 };
      expect(found({ workers: [worker(holder('1', 10, 100), looked), worker(holder('2', 150, 160))] })).toEqual(count);
    });

    it('are not counted if the holder was killed before', () => {
      const killed = { ...worker(holder('1', 10, 100)), killedAt: 50, exit: 'SIGKILL' };
      expect(found({ workers: [killed, worker(holder('2', 60, 70))] })).toEqual({});
    });

    it('are reported but not counted where an assumption was broken', () => {
      const workers = [worker(holder('1', 10, 500)), worker(holder('2', 150, 160)), worker(holder('3', 300, 310))];
      const phases: Phase[] = [
        { name: 'faults', from: 0, to: 100 },
        { name: 'assumptions broken', from: 100, to: 200 },
        { name: 'faults', from: 200, to: 1_000 },
      ];
      expect(found({ workers, phases })).toEqual({});
      expect(overlaps(evidence({ workers, phases })).map(({ forbidden }) => forbidden)).toEqual([false, false]);
    });
  });

  describe('permits', () => {
    const keys = ['p#0', 'p#1', 'p#2'];
    const permit = (name: string, slot: number, from: number, until: number): TraceEvent[] =>
      holder(name, from, until, { keys: [`p#${slot}`], permits: 3 });
    const three = [permit('1', 0, 10, 100), permit('2', 1, 20, 100), permit('3', 2, 30, 100)];

    it('may all be taken at the same time', () =>
      expect(found({ keys, workers: [worker(...three, permit('4', 1, 100, 120))] })).toEqual({}));

    it('are counted beyond their number, whatever their slots', () => {
      const count = { 'permits beyond their number': 1 };
      expect(found({ keys, workers: [worker(...three, permit('4', 3, 40, 120))] })).toEqual(count);
    });

    it('are not counted beyond their number where an assumption was broken', () => {
      const phases: Phase[] = [{ name: 'assumptions broken', from: 0, to: 1_000 }];
      expect(found({ keys, phases, workers: [worker(...three, permit('4', 3, 40, 120))] })).toEqual({});
    });

    it('overlap if two holders have the same slot', () => {
      const workers = [worker(permit('1', 0, 10, 100), permit('2', 0, 20, 100))];
      expect(found({ keys, workers })).toEqual({ 'overlaps between believers': 1 });
    });
  });

  describe('fencing tokens', () => {
    it('must be unique for a key', () => {
      const workers = [worker(holder('1', 10, 20, { token: 7 })), worker(holder('2', 30, 40, { token: 7, asked: 5 }))];
      expect(found({ workers })).toMatchObject({ 'duplicate fencing tokens': 1 });
    });

    it('may be the same for two keys', () => {
      const other = holder('2', 30, 40, { token: 7, keys: ['b'] });
      expect(found({ keys: ['a', 'b'], workers: [worker(holder('1', 10, 20, { token: 7 }), other)] })).toEqual({});
    });

    it('must grow for a later holder, even if it asked before', () => {
      const workers = [worker(holder('1', 10, 20, { token: 7 })), worker(holder('2', 30, 40, { token: 6, asked: 5 }))];
      expect(found({ workers })).toEqual({ 'unordered fencing tokens': 1 });
    });

    it('must grow for a holder that asks later, even while assumptions are broken', () => {
      const phases: Phase[] = [{ name: 'assumptions broken', from: 0, to: 1_000 }];
      const workers = [worker(holder('1', 10, 90, { token: 7 })), worker(holder('2', 30, 40, { token: 6 }))];
      expect(found({ workers, phases })).toEqual({ 'unordered fencing tokens': 1 });
    });
  });

  describe('writes', () => {
    const workers = [worker(holder('1', 10, 20, { token: 1 })), worker(holder('2', 30, 40, { token: 2, asked: 5 }))];

    it('are stale if they are accepted after a write of a later section', () => {
      const count = { 'stale writes accepted': 1 };
      expect(found({ workers, writes: [write('1', 15), write('2', 35), write('1', 36)] })).toEqual(count);
    });

    it('are stale if accepted after a write of a holder that asked later, even while assumptions are broken', () => {
      const phases: Phase[] = [{ name: 'assumptions broken', from: 0, to: 1_000 }];
      const both = [worker(holder('1', 10, 90, { token: 1 })), worker(holder('2', 30, 40, { token: 2 }))];
      const count = { 'stale writes accepted': 1 };
      expect(found({ workers: both, phases, writes: [write('2', 35), write('1', 36)] })).toEqual(count);
    });

    it('are not stale if they are refused, or if no later section has written', () => {
      expect(found({ workers, writes: [write('2', 35), write('1', 36, { accepted: false })] })).toEqual({});
      expect(found({ workers, writes: [write('1', 15), write('1', 33), write('2', 35)] })).toEqual({});
    });
  });

  it('counts leftover keys', () => {
    const ghosts = [{ master: 2, key: 'lock:a', ttl: -1 }];
    expect(found({ ghosts })).toEqual({ 'ghost keys': 1 });
  });

  describe('operations', () => {
    const asked: TraceEvent = { kind: 'asked', op: 'release', id: 1, at: 0, within: 100 };

    it('hang if they never settle, unless their process was killed', () => {
      expect(found({ workers: [worker(asked)] })).toEqual({ 'hung operations': 1 });
      expect(found({ workers: [{ ...worker(asked), killedAt: 5, exit: 'SIGKILL' }] })).toEqual({});
    });

    it('hang if they take much longer than allowed, unless their process did not run', () => {
      const settled = { kind: 'settled', id: 1, at: 700, how: 'released' } as const;
      expect(found({ workers: [worker(asked, { ...settled, stalled: 0 })] })).toEqual({ 'hung operations': 1 });
      expect(found({ workers: [worker(asked, { ...settled, stalled: 200 })] })).toEqual({});
    });
  });

  describe('losses', () => {
    const lost = { kind: 'lost', section: '1', at: 200, due: 100, stalled: 0, why: 'expired' } as const;

    it.each(['lost', 'left'] as const)('are late if the holder has %s the lock after its validity', (kind) => {
      const workers = [worker(holder('1', 10, 100), { ...lost, kind })];
      expect(found({ workers })).toEqual({ 'late loss reports': 1 });
    });

    it('are not late if the process did not run', () =>
      expect(found({ workers: [worker(holder('1', 10, 100), { ...lost, stalled: 80 })] })).toEqual({}));
  });

  it('counts unhandled errors', () => {
    const workers = [worker({ kind: 'unhandled', at: 5, message: 'TypeError' })];
    expect(found({ workers })).toEqual({ 'unhandled errors': 1 });
  });

  it('counts processes that did not exit by themselves, unless they were killed on purpose', () => {
    const stuck = { ...worker({ kind: 'closed', at: 5 }), exit: 'SIGKILL' };
    expect(found({ workers: [stuck] })).toEqual({ 'processes that did not end': 1 });
    expect(found({ workers: [{ ...stuck, exit: 13 }] })).toEqual({ 'processes that did not end': 1 });
    expect(found({ workers: [{ ...stuck, killedAt: 4 }] })).toEqual({});
  });

  it('counts keys that are not obtained when all faults are healed', () => {
    const phases: Phase[] = [QUIET, { name: 'calm', from: 1_000, to: 2_000 }];
    const late = worker(holder('1', 1_010, 1_020));
    expect(found({ keys: ['a', 'b'], phases, workers: [late] })).toEqual({ 'keys not obtained in the calm': 1 });
  });

  it('counts keys that are obtained by shared holders only when all faults are healed', () => {
    const phases: Phase[] = [QUIET, { name: 'calm', from: 1_000, to: 2_000 }];
    const shared = worker(holder('1', 1_010, 1_020, { mode: 'shared' }));
    expect(found({ phases, workers: [shared] })).toEqual({ 'keys not obtained in the calm': 1 });
  });
});
