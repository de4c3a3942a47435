// The small configurations, and the counter-examples that the search finds within seconds. `npm run model` explores
// all.
import { describe, expect, it } from '@jest/globals';
import { explore, type Model } from './checker.js';
import { sections } from './configurations.js';

/** Two counters that step up to three; `forbidden` is the sum that they must not reach. */
class TwoCounters implements Model {
  readonly width = 2;

  constructor(private readonly forbidden: number) {}

  initial(): Uint8Array[] {
    return [new Uint8Array(2)];
  }

  successors(state: Uint8Array, emit: (next: Uint8Array, action: number) => void): void {
    for (const counter of [0, 1]) {
      const next = state.slice();
      next[counter]! += 1;
      if (next[counter]! <= 3) emit(next, counter);
    }
  }

  violation(state: Uint8Array): string | undefined {
    return state[0]! + state[1]! === this.forbidden ? `the sum is ${this.forbidden}` : undefined;
  }

  describe(action: number): string {
    return `counter ${action} steps`;
  }

  show(state: Uint8Array): string {
    return state.join(' ');
  }
}

describe('Checker', () => {
  it('visits each state once and takes every step', () => {
    const verdict = explore(new TwoCounters(7));
    expect(verdict).toEqual({ states: 16, transitions: 24, depth: 6, bounded: false });
  });

  it('shows a shortest way to a broken property, step by step', () => {
    const { violation } = explore(new TwoCounters(2));
    expect(violation).toEqual({
      property: 'the sum is 2',
      trace: [
        { action: 'start', state: '0 0' },
        { action: 'counter 0 steps', state: '1 0' },
        { action: 'counter 0 steps', state: '2 0' },
      ],
    });
  });

  it('reports that the bound on states ended the search', () => {
    expect(explore(new TwoCounters(7), 10)).toMatchObject({ states: 10, bounded: true });
  });
});

const quick = sections.map(({ title, holds, breaks }) => ({
  holds: holds.filter((one) => one.quick).map((one) => ({ title, ...one })),
  breaks: breaks.filter((one) => one.quick).map((one) => ({ title, ...one })),
}));

describe('Models', () => {
  it.each(quick.flatMap(({ holds }) => holds))('keep their promises: $title: $name', ({ model }) => {
    const { violation, bounded } = explore(model());
    expect({ violation, bounded }).toEqual({ violation: undefined, bounded: false });
  });

  it.each(quick.flatMap(({ breaks }) => breaks))('break a promise without the rule: $title: $name', ({ model }) => {
    expect(explore(model()).violation).toBeDefined();
  });
});
