import type { Meter } from '@opentelemetry/api';

// Bucket boundaries in seconds, from the latency of a nearby master to the waiting budget.
const MOMENTS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
// From a few commands to the longest hold.
const HOLDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
// From a quick job to the longest hold of a job.
const JOBS = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400];

// Durations are in seconds, as is the convention in OpenTelemetry.
export function instrumentsOf(meter: Meter) {
  return {
    acquireDuration: meter.createHistogram('redlock.acquire.duration', {
      ...seconds(MOMENTS),
      description: 'From the call to its outcome.',
    }),
    waitDuration: meter.createHistogram('redlock.wait.duration', {
      ...seconds(MOMENTS),
      description: 'How much of it was spent waiting, of those that had to wait.',
    }),
    holdDuration: meter.createHistogram('redlock.hold.duration', {
      ...seconds(HOLDS),
      description: 'From the grant to the release or the loss.',
    }),
    waiters: meter.createUpDownCounter('redlock.waiters', {
      unit: '{acquisition}',
      description: 'Acquisitions that have no outcome yet.',
    }),
    held: meter.createUpDownCounter('redlock.locks.held', {
      unit: '{lock}',
      description: 'Locks that this process holds.',
    }),
    lost: meter.createCounter('redlock.locks.lost', {
      unit: '{lock}',
      description: 'Locks that were lost while their holders relied on them.',
    }),
    endangered: meter.createCounter('redlock.locks.endangered', {
      unit: '{lock}',
      description: 'Locks with less than a third of their ttl left whose extension failed.',
    }),
    events: meter.createCounter('redlock.events', {
      unit: '{event}',
      description: 'Changes of masters and of the quorum.',
    }),
    mastersVoting: meter.createObservableGauge('redlock.masters.voting', {
      unit: '{master}',
      description: 'Masters whose votes count.',
    }),
    masterState: meter.createObservableGauge('redlock.master.state', {
      description: '1 for the present state of a master, 0 for all other states.',
    }),
    quorumAvailable: meter.createObservableGauge('redlock.quorum.available', {
      description: '1 while a quorum of masters votes, so that locks can be taken; otherwise 0.',
    }),
    masterAnswers: meter.createCounter('redlock.master.answers', {
      unit: '{answer}',
      description: 'What the masters answered.',
    }),
    masterLatency: meter.createHistogram('redlock.master.latency', {
      ...seconds(MOMENTS),
      description: 'In which time the masters answered.',
    }),
    jobRuns: meter.createCounter('redlock.job.runs', {
      unit: '{run}',
      description: 'Runs of scheduled jobs that have ended on this instance.',
    }),
    jobDuration: meter.createHistogram('redlock.job.duration', {
      ...seconds(JOBS),
      description: 'From the start of a scheduled job to its recorded end.',
    }),
    jobSkips: meter.createCounter('redlock.job.skips', {
      unit: '{tick}',
      description: 'Ticks of scheduled jobs that this instance did not run.',
    }),
    jobLastSuccess: meter.createObservableGauge('redlock.job.last_success', {
      unit: 's',
      description: 'When a scheduled job last ended without an error on any instance, in seconds since the epoch.',
    }),
    leading: meter.createUpDownCounter('redlock.leader.leading', {
      unit: '{election}',
      description: '1 while this instance leads, otherwise 0.',
    }),
    overruns: meter.createCounter('redlock.leader.overruns', {
      unit: '{term}',
      description: 'Terms whose method went on for a second after the loss.',
    }),
    terms: meter.createCounter('redlock.leader.terms', {
      unit: '{term}',
      description: 'Terms of this instance that have ended.',
    }),
    timeToLead: meter.createHistogram('redlock.leader.time_to_lead', {
      ...seconds(MOMENTS),
      description: 'From the grant of the lock of an election to the call of the method.',
    }),
  };
}

function seconds(boundaries: readonly number[]) {
  return { unit: 's', advice: { explicitBucketBoundaries: [...boundaries] } };
}
