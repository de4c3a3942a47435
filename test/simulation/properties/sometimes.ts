import type { Observer } from '../../../lib/core/observer.js';

/**
 * States that a mass of schedules must reach: a property that is never put to the test proves nothing. A new one is one
 * line here, and a call of `reached` where it can be seen; what the library tells its observer is found by its words.
 */
export const RARE_STATES = [
  'a hand-off reservation expired',
  'an extension healed a master',
  'a master answered NOSCRIPT',
  'a master refused writes as a replica',
  'a quarantine began',
  'a quarantine ended',
  'a marker was vetoed by a witness',
  'new masters voted early',
  `a master's clock was accused`,
  'a client shortened its own leases',
  'a twin was excluded',
  'a replica was excluded',
  'a master fell silent',
  'a master answered again',
  'a lock expired',
  'a loss was told after a resume',
  'a healthy client held a lock beside a sick one',
  'a process with a larger maxTtl came or went',
  'all masters lost their data',
] as const;

export type RareState = (typeof RARE_STATES)[number];

/** What an observer is told, and what state its words mean. */
const TOLD: readonly (readonly [keyof Observer, RegExp, RareState])[] = [
  ['masterQuarantined', /clock/, `a master's clock was accused`],
  ['masterQuarantined', /./, 'a quarantine began'],
  ['masterVotesAgain', /./, 'a quarantine ended'],
  ['masterRefused', /same server/, 'a twin was excluded'],
  ['masterRefused', /replica/, 'a replica was excluded'],
  ['masterSilent', /./, 'a master fell silent'],
  ['masterAnswersAgain', /./, 'a master answered again'],
];

/** The states that one run has reached. */
export class Sometimes {
  private readonly seen = new Set<RareState>();

  reached(state: RareState): void {
    this.seen.add(state);
  }

  /** The library tells its observer something. */
  told(event: keyof Observer, words: string): void {
    for (const [name, pattern, state] of TOLD) if (name === event && pattern.test(words)) this.seen.add(state);
  }

  get states(): readonly RareState[] {
    return [...this.seen];
  }
}
