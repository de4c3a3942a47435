import type { JobSkipReason } from './job-policy.js';

/** Why a tick does not run here, in words that follow `does not run here: `. */
export const SKIP_WORDS: Readonly<Record<JobSkipReason, string>> = {
  finished: 'another instance has run it',
  overlap: 'an earlier tick still ran when it came due',
  superseded: 'a later tick took its place',
  late: 'this instance noticed it too late',
  abandoned: 'it was started and not ended, and `recover` is false',
  unknown: 'the masters have lost its record, so that it may have run',
  baseline: 'the job had no record yet, and it was due earlier',
};
