import { describe, expect, it } from '@jest/globals';
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

const [BROKEN, CALM]: Phase[] = [
  { name: 'assumptions broken', from: 0, to: 1_000 },
  { name: 'calm', from: 1_000, to: 2_000 },
];
const shared = { mode: 'shared' } as const;
const PERMITS = ['p#0', 'p#1', 'p#2'];
const permit = (name: string, slot: number, from: number): TraceEvent[] =>
  holder(name, from, 100, { keys: [`p#${slot}`], permits: 3 });
const threePermits = [permit('1', 0, 10), permit('2', 1, 20), permit('3', 2, 30)];
const drawn = (one: number, other: number, asked = 29): WorkerRecord[] => [
  worker(holder('1', 10, 20, { token: one })),
  worker(holder('2', 30, 40, { token: other, asked })),
];
const asked: TraceEvent = { kind: 'asked', op: 'release', id: 1, at: 0, within: 100 };
const settled: TraceEvent = { kind: 'settled', id: 1, at: 700, how: 'released', stalled: 0 };
const late = { section: '1', at: 200, due: 100, stalled: 0, why: 'expired' } as const;
const stuck = { ...worker({ kind: 'closed', at: 5 }), exit: 13 };

/** Evidence, with the events of one process, or those of several. */
const seen = (...events: TraceEvent[][]): Partial<Evidence> => ({ workers: events.map((each) => worker(each)) });

describe('The checker', () => {
  it('finds nothing in a correct run', () => {
    const first = [...holder('1', 10, 100, { token: 1, left: 50 }), asked, { ...settled, at: 10 }];
    const later = [...holder('2', 60, 160, { token: 2, left: 90 }), ...holder('3', 95, 200, { keys: ['b'], token: 2 })];
    const workers = [worker(first, later, threePermits.flat()), worker(holder('4', 300, 310, shared))];
    const killed = { ...worker(holder('5', 320, 900), asked), killedAt: 330, exit: 'SIGKILL' };
    const keys = ['a', 'b', ...PERMITS];
    const writes = [write('1', 40), write('2', 70), write('1', 80, { accepted: false })];
    expect(found({ keys, workers: [...workers, killed, worker(holder('6', 340, 350))], writes })).toEqual({});
  });

  const OVERLAP = 'overlaps between believers';
  const both = (one: Partial<Section>, other: Partial<Section>): Partial<Evidence> =>
    seen(holder('1', 10, 100, one), holder('2', 50, 60, other));
  const extended: TraceEvent = { kind: 'looked', section: '1', at: 90, until: 200 };

  it.each<[string, Check, Partial<Evidence>, count?: number]>([
    ['two believers', OVERLAP, seen(holder('1', 10, 100), holder('2', 99, 150))],
    ['two inside of a longer one', OVERLAP, seen(holder('1', 10, 500), holder('2', 20, 30), holder('3', 400, 410)), 2],
    [
      ...(['believers of both modes inside of longer ones', OVERLAP] as const),
      seen(
        [...holder('1', 10, 50), ...holder('2', 20, 500, shared), ...holder('3', 400, 410)],
        [...holder('4', 600, 800), ...holder('5', 610, 900, shared), ...holder('6', 700, 710, shared)],
      ),
      4,
    ],
    ['a writer beside a reader', OVERLAP, both(shared, {})],
    ['a reader beside a writer', OVERLAP, both({}, shared)],
    ['a believer of several keys', OVERLAP, { ...both({ keys: ['a', 'b'] }, { keys: ['b'] }), keys: ['a', 'b'] }],
    ['one who saw it extended', OVERLAP, seen([...holder('1', 10, 100), extended], holder('2', 150, 160))],
    ['two holders of one permit', OVERLAP, { keys: PERMITS, ...seen(permit('1', 0, 10), permit('2', 0, 20)) }],
    [
      ...(['a permit too many', 'permits beyond their number'] as const),
      { keys: PERMITS, ...seen(...threePermits, permit('4', 3, 40)) },
    ],
    ['a token that was given twice', 'duplicate fencing tokens', { workers: drawn(7, 7, 5) }],
    ['a smaller token of a later holder', 'unordered fencing tokens', { workers: drawn(7, 6, 5) }],
    [
      ...(['a smaller token of who asked later, while assumptions are broken', 'unordered fencing tokens'] as const),
      { workers: drawn(7, 6), phases: [BROKEN!] },
    ],
    [
      ...(['a write after that of a later section', 'stale writes accepted'] as const),
      { workers: drawn(1, 2, 5), writes: [write('1', 15), write('2', 35), write('1', 36)] },
    ],
    [
      ...(['a write after that of who asked later, while assumptions are broken', 'stale writes accepted'] as const),
      { workers: drawn(1, 2), phases: [BROKEN!], writes: [write('2', 35), write('1', 36)] },
    ],
    ['a leftover key', 'ghost keys', { ghosts: [{ master: 2, key: 'lock:a', ttl: -1 }] }],
    ['an operation that never settles', 'hung operations', seen([asked])],
    ['an operation that takes too long', 'hung operations', seen([asked, settled])],
    ['a late loss', 'late loss reports', seen([...holder('1', 10, 100), { ...late, kind: 'lost' }])],
    ['a lock that is left too late', 'late loss reports', seen([...holder('1', 10, 100), { ...late, kind: 'left' }])],
    ['an unhandled error', 'unhandled errors', seen([{ kind: 'unhandled', at: 5, message: 'TypeError' }])],
    ['a process that does not end well', 'processes that did not end', { workers: [stuck] }],
    [
      ...(['a key that only a reader obtains at the end', 'keys not obtained in the calm'] as const),
      { phases: [QUIET, CALM!], ...seen(holder('1', 1_010, 1_020, shared)) },
    ],
  ])('notices %s', (_, check, given, count = 1) => expect(found(given)).toMatchObject({ [check]: count }));

  it('does not count what happens while an assumption is broken, nor how long a process did not run', () => {
    const overlapping = seen(holder('1', 10, 500), holder('2', 150, 160));
    expect(found({ ...overlapping, phases: [BROKEN!] })).toEqual({});
    expect(found({ keys: PERMITS, phases: [BROKEN!], ...seen(...threePermits, permit('4', 3, 40)) })).toEqual({});
    const paused = [...holder('1', 10, 100), { ...late, kind: 'lost', stalled: 80 } as const];
    expect(found(seen([asked, { ...settled, stalled: 200 }], paused))).toEqual({});
  });
});
