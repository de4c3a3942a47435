/** Situations that a good simulation reaches, and in which the rules of jobs matter. */
export const RARE_STATES = [
  'a crash between the request to store a start and its acknowledgement',
  'a crash during a run',
  'a crash between a run and the acknowledgement of its end',
  'a tick ran again on another instance',
  'a tick was started three times or more',
  'a crashed tick was abandoned',
  'an instance started a run while a paused one believed that it ran',
  'the store of a start failed',
  'the store of an end failed, and was repeated',
  'a record was read of which a majority of masters had lost the last one',
  'a tick was marked unknown',
  'a baseline was stored',
  'a run was handed on at a shutdown',
  'a run ended in time for a shutdown',
  'a missed tick was caught up',
  'a tick started on an instance whose clock was minutes ahead',
  'a tick started on an instance whose clock was minutes behind',
  'a tick was skipped because of an overlap',
  'a tick was queued behind a run',
  'a tick was superseded',
  'a master lost its data',
  'a master came back with older data',
  'a loss was withheld to keep the condition',
  'a lost master was rewritten',
] as const;

export type RareState = (typeof RARE_STATES)[number];
