import type {
  Attributes,
  BatchObservableCallback,
  Counter,
  Histogram,
  Meter,
  ObservableGauge,
  UpDownCounter,
} from '@opentelemetry/api';
import { type MasterState, type RedlockStatus, votingIn } from '../core/health/status.js';

// Bucket boundaries in seconds, from the latency of a nearby master to the waiting budget.
const MOMENTS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
// From a few commands to the longest hold.
const HOLDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
// From a quick job to the longest hold of a job.
const JOBS = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400];

// Durations are in seconds, as is the convention in OpenTelemetry.
export class Instruments {
  readonly acquireDuration: Histogram;
  readonly waitDuration: Histogram;
  readonly holdDuration: Histogram;
  readonly waiters: UpDownCounter;
  readonly held: UpDownCounter;
  readonly lost: Counter;
  readonly endangered: Counter;
  readonly events: Counter;
  readonly mastersVoting: ObservableGauge;
  readonly masterState: ObservableGauge;
  readonly quorumAvailable: ObservableGauge;
  readonly masterAnswers: Counter;
  readonly masterLatency: Histogram;
  readonly jobRuns: Counter;
  readonly jobDuration: Histogram;
  readonly jobSkips: Counter;
  readonly jobLastSuccess: ObservableGauge;
  readonly leading: UpDownCounter;
  readonly overruns: Counter;
  readonly terms: Counter;
  readonly timeToLead: Histogram;

  constructor(meter: Meter) {
    this.acquireDuration = meter.createHistogram('redlock.acquire.duration', {
      ...seconds(MOMENTS),
      description: 'From the call to its outcome.',
    });
    this.waitDuration = meter.createHistogram('redlock.wait.duration', {
      ...seconds(MOMENTS),
      description: 'How much of it was spent waiting, of those that had to wait.',
    });
    this.holdDuration = meter.createHistogram('redlock.hold.duration', {
      ...seconds(HOLDS),
      description: 'From the grant to the release or the loss.',
    });
    this.waiters = meter.createUpDownCounter('redlock.waiters', {
      unit: '{acquisition}',
      description: 'Acquisitions that have no outcome yet.',
    });
    this.held = meter.createUpDownCounter('redlock.locks.held', {
      unit: '{lock}',
      description: 'Locks that this process holds.',
    });
    this.lost = meter.createCounter('redlock.locks.lost', {
      unit: '{lock}',
      description: 'Locks that were lost while their holders relied on them.',
    });
    this.endangered = meter.createCounter('redlock.locks.endangered', {
      unit: '{lock}',
      description: 'Locks with less than a third of their ttl left whose extension failed.',
    });
    this.events = meter.createCounter('redlock.events', {
      unit: '{event}',
      description: 'Changes of masters and of the quorum.',
    });
    this.mastersVoting = meter.createObservableGauge('redlock.masters.voting', {
      unit: '{master}',
      description: 'Masters whose votes count.',
    });
    this.masterState = meter.createObservableGauge('redlock.master.state', {
      description: '1 for the present state of a master, 0 for all other states.',
    });
    this.quorumAvailable = meter.createObservableGauge('redlock.quorum.available', {
      description: '1 while a quorum of masters votes, so that locks can be taken; otherwise 0.',
    });
    this.masterAnswers = meter.createCounter('redlock.master.answers', {
      unit: '{answer}',
      description: 'What the masters answered.',
    });
    this.masterLatency = meter.createHistogram('redlock.master.latency', {
      ...seconds(MOMENTS),
      description: 'In which time the masters answered.',
    });
    this.jobRuns = meter.createCounter('redlock.job.runs', {
      unit: '{run}',
      description: 'Runs of scheduled jobs that have ended on this instance.',
    });
    this.jobDuration = meter.createHistogram('redlock.job.duration', {
      ...seconds(JOBS),
      description: 'From the start of a scheduled job to its recorded end.',
    });
    this.jobSkips = meter.createCounter('redlock.job.skips', {
      unit: '{tick}',
      description: 'Ticks of scheduled jobs that this instance did not run.',
    });
    this.jobLastSuccess = meter.createObservableGauge('redlock.job.last_success', {
      unit: 's',
      description: 'When a scheduled job last ended without an error on any instance, in seconds since the epoch.',
    });
    this.leading = meter.createUpDownCounter('redlock.leader.leading', {
      unit: '{election}',
      description: '1 while this instance leads, otherwise 0.',
    });
    this.overruns = meter.createCounter('redlock.leader.overruns', {
      unit: '{term}',
      description: 'Terms whose method went on for a second after the loss.',
    });
    this.terms = meter.createCounter('redlock.leader.terms', {
      unit: '{term}',
      description: 'Terms of this instance that have ended.',
    });
    this.timeToLead = meter.createHistogram('redlock.leader.time_to_lead', {
      ...seconds(MOMENTS),
      description: 'From the grant of the lock of an election to the call of the method.',
    });
  }
}

function seconds(boundaries: readonly number[]) {
  return { unit: 's', advice: { explicitBucketBoundaries: [...boundaries] } };
}

const STATES: readonly MasterState[] = ['voting', 'quarantined', 'silent', 'down', 'refused'];

// At each collection of metrics, also while no lock is used. Returns a function that ends the reports.
export function observeStatus(
  meter: Meter,
  { mastersVoting, masterState, quorumAvailable }: Instruments,
  { status, attributes }: { readonly status: () => RedlockStatus; readonly attributes: Attributes },
): () => void {
  const gauges = [mastersVoting, masterState, quorumAvailable];
  const observe: BatchObservableCallback = (result) => {
    const present = status();
    result.observe(mastersVoting, votingIn(present), attributes);
    result.observe(quorumAvailable, present.canVote ? 1 : 0, attributes);
    for (const { master, state } of present.masters) {
      for (const each of STATES) {
        const labels = { ...attributes, 'redlock.master': master, 'redlock.state': each };
        result.observe(masterState, each === state ? 1 : 0, labels);
      }
    }
  };
  meter.addBatchObservableCallback(observe, gauges);
  return () => meter.removeBatchObservableCallback(observe, gauges);
}
