import { describe, expect, it } from '@jest/globals';
import {
  type Failure,
  failureOf,
  type Pause,
  type Step,
  stepAfter,
  transitionAfter,
} from '../../../../lib/core/acquire/transitions.js';

// Protocol 5.6
describe('transitionAfter', () => {
  it.each(['refused', 'split'] as const)('pauses before the home master if that fails and all have %s', (failure) => {
    expect(transitionAfter('all', failure, true)).toEqual({ schedule: undefined, next: 'pause' });
  });

  it.each<[Step, Failure, string | undefined, Step | 'pause']>([
    ['all', 'refused', undefined, 'home'],
    ['all', 'split', undefined, 'home'],
    ['all', 'unavailable', 'failure', 'pause'],
    ['all', 'late', 'failure', 'pause'],
    ...(['home', 'reservation'] as const).flatMap((step): [Step, Failure, string, Step | 'pause'][] => [
      [step, 'refused', 'refusal', 'pause'],
      [step, 'split', 'failure', 'pause'],
      [step, 'unavailable', 'failure', 'all'],
      [step, 'late', 'failure', 'pause'],
    ]),
  ])('after an attempt of kind "%s" that failed as "%s", records %s and goes on with "%s"', (...row) => {
    const [step, failure, schedule, next] = row;
    expect(transitionAfter(step, failure, false)).toEqual({ schedule, next });
  });
});

describe('failureOf', () => {
  it.each([
    ['held', false, 'refused'],
    ['held', true, 'split'],
    ['unavailable', false, 'unavailable'],
    ['unavailable', true, 'unavailable'],
    ['granted', false, 'late'],
  ] as const)('names an outcome "%s" with isSplit %s "%s"', (outcome, isSplit, failure) => {
    expect(failureOf({ outcome, isSplit })).toBe(failure);
  });
});

describe('stepAfter', () => {
  const quiet: Pause = {
    ...{ step: 'home', failure: 'refused', reason: undefined, hasOneKey: true },
    ...{ expiry: 9_000, poll: 750, isWide: false },
  };

  it.each<[string, Partial<Pause>, Step]>([
    ['a poll', {}, 'home'],
    ['a poll of all masters', { isWide: true }, 'all'],
    ['the expiry of the keys', { expiry: 500, isWide: true }, 'home'],
    ['a pause without a known expiry', { expiry: Infinity }, 'all'],
    ['a notification', { reason: 'next' }, 'reservation'],
    ['a notification for one of several keys', { reason: 'next', hasOneKey: false }, 'home'],
    ['another reason to wake', { reason: 'retry', isWide: true }, 'home'],
    ['a split vote', { failure: 'split', isWide: true }, 'home'],
    ['an attempt on all masters', { step: 'all', isWide: true }, 'home'],
  ])('after %s, contacts the right masters', (_, change, step) => {
    expect(stepAfter({ ...quiet, ...change })).toBe(step);
  });
});
