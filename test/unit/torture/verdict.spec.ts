import { describe, expect, it } from '@jest/globals';
import { explain } from '../../torture/jobs/verdict.mjs';

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
      /ran again although nothing happened to a1/,
    ],
    ['a second run that the history does not explain', { runs: again, killed: ['a1'] }, /^the history does not show/],
    [
      'a run without an end',
      { runs: [...once(0, 2), ['start', 1, 1, 'a1']] },
      /^the last attempt of .* has not ended$/,
    ],
  ])('reports %s', (_, story, problem) => expect(judge(story).problems).toEqual([expect.stringMatching(problem)]));
});
