import { describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { explain } from '../../torture/jobs/verdict.mjs';
import { KEPT, type Kind, KINDS } from '../../torture/kinds.js';
import { type Plan, type PlannedFault, planOf, QUARANTINE } from '../../torture/plan.js';

const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const options = { milliseconds: 20_000, masters: 5, workers: 4, clocks: true };
const kindOf = ({ kind }: PlannedFault): Kind => KINDS[kind];

describe('A torture plan', () => {
  it('breaks assumptions only in the phases for that, and heals every fault within its phase', () => {
    expectNowhere(({ phases, faults }) =>
      faults.filter(({ at, lasts, kind }) => {
        const phase = phases.find(({ from, to }) => from <= at && at < to)!;
        return phase.name !== (kind in KEPT ? 'faults' : 'assumptions broken') || at + lasts > phase.to;
      }),
    );
  });

  it('gives a target one fault at a time, until its votes count again', () => {
    expectNowhere(({ faults }) =>
      faults.filter(keepsAssumptions).filter((fault, index, kept) => {
        const until = fault.at + fault.lasts + (kindOf(fault).forgets ? QUARANTINE : 0);
        return kept.slice(index + 1).some((other) => other.at < until && shareTarget(fault, other));
      }),
    );
  });

  it('keeps all processes present and informed while a master forgets what only they can notice', () => {
    expectNowhere(({ faults }) =>
      faults.filter(keepsAssumptions).filter((fault, _, kept) => {
        if (!kindOf(fault).needsWitnesses) return false;
        const isAway = ({ at, lasts }: PlannedFault): boolean => at <= fault.at && fault.at < at + lasts;
        return kept.some((other) => {
          const { newWorker, target } = kindOf(other);
          return (newWorker && Math.abs(other.at - fault.at) < 4_000) || (target === 'worker' && isAway(other));
        });
      }),
    );
  });

  function expectNowhere(offences: (plan: Plan) => readonly PlannedFault[]): void {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 20_000, max: 60_000 }), (seed, milliseconds) =>
        expect(offences(planOf({ ...options, seed, milliseconds }))).toEqual([]),
      ),
    );
  }

  function shareTarget(a: PlannedFault, b: PlannedFault): boolean {
    const areAlike = (kindOf(a).target === 'worker') === (kindOf(b).target === 'worker');
    return areAlike && a.targets.some((index) => b.targets.includes(index));
  }

  function keepsAssumptions({ kind }: PlannedFault): boolean {
    return kind in KEPT;
  }
});

const T = 1_800_000_000_000;

interface Story {
  readonly runs: readonly (readonly [event: 'start' | 'end', tick: number, attempt: number, instance: string])[];
  readonly killed?: readonly string[];
  readonly unfinished?: readonly (readonly [tick: number, attempt: number, instance: string])[];
}

/** Judges three ticks, of which the story names runs as seconds. */
function judge({ runs, killed = [], unfinished = [] }: Story): ReturnType<typeof explain> {
  return explain({
    lines: runs.map(([event, tick, attempt, instance]) => ({
      event,
      tick: T + 1_000 * tick,
      attempt,
      instance,
      at: 0,
    })),
    kills: killed.map((instance) => ({ instance, at: 0 })),
    recorded: new Map(
      unfinished.map(([tick, attempt, instance]) => [
        `${T + 1_000 * tick} ${attempt}`,
        { outcome: 'unfinished', instance },
      ]),
    ),
    from: T,
    until: T + 3_000,
  });
}

const once = (...ticks: number[]): Story['runs'] =>
  ticks.flatMap((tick) => [['start', tick, 1, 'a1'] as const, ['end', tick, 1, 'a1'] as const]);

describe('The verdict about killed jobs', () => {
  it('accepts ticks that ran once', () => {
    expect(judge({ runs: once(0, 1, 2) })).toMatchObject({
      counts: { scheduled: 3, once: 3, again: 0, missed: 0, doubled: 0 },
      problems: [],
    });
  });

  it('accepts a tick that ran again after its process was killed, if the history shows it', () => {
    const runs = [...once(0, 2), ['start', 1, 1, 'a1'], ['start', 1, 2, 'b1'], ['end', 1, 2, 'b1']] as const;
    const { counts, problems } = judge({ runs, killed: ['a1'], unfinished: [[1, 1, 'a1']] });
    expect(problems).toEqual([]);
    expect(counts).toMatchObject({ once: 2, again: 1, proved: 1, afterEnd: 0, doubled: 0 });
  });

  const again: Story['runs'] = [
    ...once(0, 2),
    ...([
      ['start', 1, 1, 'a1'],
      ['end', 1, 1, 'a1'],
      ['start', 1, 2, 'b1'],
      ['end', 1, 2, 'b1'],
    ] as const),
  ];

  it('counts a kill between the end of the work and its record', () => {
    const { counts, problems } = judge({ runs: again, killed: ['a1'], unfinished: [[1, 1, 'a1']] });
    expect([counts.afterEnd, problems]).toEqual([1, []]);
  });

  it.each<[string, Story, RegExp]>([
    ['a missed tick', { runs: once(0, 2) }, /^the tick of \S+ never ran$/],
    [
      'a second run without a kill',
      { runs: again, unfinished: [[1, 1, 'a1']] },
      /ran again although a1 was not killed/,
    ],
    ['a second run that the history does not explain', { runs: again, killed: ['a1'] }, /^the history does not show/],
    [
      'a run without an end',
      { runs: [...once(0, 2), ['start', 1, 1, 'a1']] },
      /^the last attempt of .* has not ended$/,
    ],
  ])('reports %s', (_, story, problem) => expect(judge(story).problems).toEqual([expect.stringMatching(problem)]));
});
