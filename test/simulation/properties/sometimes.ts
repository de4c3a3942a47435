import type { LockObserver } from '../../../lib/operate/observer.js';

/**
 * States that a large number of schedules must reach, because a property that is never tested proves nothing. A new
 * state takes one line here, and a call of `reached` where it is visible. States that the library reports to its
 * observer are found by the words of the report.
 */
export const RARE_STATES = [
  'a hand-off reservation expired',
  'a lock ended before its work could start',
  'an extension healed a master',
  'another holder had a lock that was still relied on',
  'a holder was told that its keys were gone',
  'a master answered NOSCRIPT',
  'a master refused writes as a replica',
  'a quarantine began',
  'a quarantine ended',
  'a marker was written where there was none',
  'the marker of an earlier run was replaced',
  'a request outlived its connection',
  'a connection was younger than a round',
  'a twin was excluded',
  'a replica was excluded',
  'a master fell silent',
  'a master answered again',
  'a lock expired',
  'a loss was reported after a resume',
  'a healthy client held a lock beside a sick one',
  'a lock outlived a fault of a minority of the masters',
  'a process with a larger maxTtl came or went',
  'all masters lost their data',
  'a master had no memory for a write',
  'a half-open connection was replaced',
  'a message arrived more than a second late',
  'a majority of masters lost a state',
  'a state was claimed for a larger number',
  'a set of unknown result was read by a later holder',
  'the value of a state was written again by another holder',
  'a master took no further part in a state, because it had lost data',
  'several processes held a lock together',
  'an exclusive request had a writer key',
  'a shared request was deferred by a writer key',
  'a release woke several shared requests',
  'an extension healed a shared holder',
  'a home master picked a permit',
  'another permit was picked after a refusal',
  'all permits were taken',
  'a nested call passed an earlier call that waited for its chain',
  'a lock was passed on in its process',
] as const;

export type RareState = (typeof RARE_STATES)[number];

/** Reports to an observer, and the states that their words indicate. */
const REPORTED: readonly (readonly [keyof LockObserver, RegExp, RareState])[] = [
  ['lockLost', /gone from/, 'a holder was told that its keys were gone'],
  ['masterQuarantined', /./, 'a quarantine began'],
  ['masterVotesAgain', /./, 'a quarantine ended'],
  ['masterRefused', /same server/, 'a twin was excluded'],
  ['masterRefused', /replica/, 'a replica was excluded'],
  ['masterAnswered', /younger than/, 'a connection was younger than a round'],
  ['masterSilent', /./, 'a master fell silent'],
  ['masterAnswersAgain', /./, 'a master answered again'],
];

export class Sometimes {
  private readonly seen = new Set<RareState>();

  reached(state: RareState): void {
    this.seen.add(state);
  }

  reported(event: keyof LockObserver, words: string): void {
    for (const [name, pattern, state] of REPORTED) if (name === event && pattern.test(words)) this.seen.add(state);
  }

  get states(): readonly RareState[] {
    return [...this.seen];
  }
}
