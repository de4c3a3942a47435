import { driftOf } from '../../core/settings/settings.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Instant } from '../../core/clock.js';
import type { ServerRecord } from './server-record.js';
import { EARLY_FROM } from './new-masters.js';
import type { GuardGroup } from './guard-group.js';
import type { TtlAnnouncements } from './ttl-announcements.js';
import { judgeStep, type Judgement, movement, type Sample, sampleOf, type ServerClock } from './server-clock.js';

// In milliseconds. Steps that matter to this ttl are noticed even if this process uses longer ones, since others may
// not.
const SHORT_TTL = 1_000;

type Lag = Extract<Judgement, { readonly min: number }>;
interface Answer {
  readonly sample: Sample;
  // Of the data that answered: the address may lead elsewhere by the time of the judgement.
  readonly clock: ServerClock;
}
type Answers = ReadonlyMap<ServerRecord, Answer>;
interface Evidence {
  readonly sample: Sample;
  // The earlier samples that show the step, the latest first.
  readonly steps: readonly Sample[];
  readonly answers: Answers;
}

// Notices steps of the masters' clocks, and finds out whether the master or this client is wrong.
export class StepJudge {
  constructor(
    private readonly group: GuardGroup,
    private readonly ttls: TtlAnnouncements,
    private readonly readMasters: () => void,
  ) {}

  // `received`: a reading of the clock in this turn.
  sampled(record: ServerRecord, sent: Instant, time: number, received = this.group.context.clock.read()): boolean {
    const sample = sampleOf(sent, received, time);
    const { allowance } = this;
    // The address may lead to another server, whose clock shows another time.
    if (record.otherData !== undefined || record.step !== undefined) return false;
    // Sent before a lag was handled, it may not show that lag: the samples are shifted already.
    if (record.isSuspect || record.isStale(sent)) return false;
    // Protocol 8.11
    if (record.clock.movedForward(sample) > allowance) {
      void this.judge(record, sample);
      return false;
    }
    if (record.clock.movedBack(sample, allowance)) {
      record.clock.forget();
      // An older state of the machine may have been restored: the marker shows whether its data is older, too.
      record.doubt('its clock was set back');
      this.readMasters();
    }
    record.clock.keep(sample);
    return true;
  }

  // How far a clock may move before a key of the smallest ttl in use expires early, in milliseconds.
  private get allowance(): number {
    return driftOf(this.group.context.settings, Math.min(this.ttls.smallestTtl, SHORT_TTL));
  }

  private async judge(record: ServerRecord, sample: Sample): Promise<void> {
    const { allowance } = this;
    record.suspect('its clock has moved');
    const answers = await this.sampleAll();
    // Several masters show a lag of this client at once: it was handled with the first of them, and the samples are shifted.
    const steps = record.clock.before(sample, allowance);
    const isConfirmed = record.clock.isConfirmed(sample, allowance);
    const [judgement, before] = this.compare(record, { sample, steps, answers });
    const isServer = judgement?.culprit === 'server';
    const shows = isServer && isConfirmed ? await this.stillShows(record, steps.at(-1), allowance) : false;
    record.isSuspect = false;
    // With its samples kept, the next answer is judged anew: without a quorum, nothing is granted meanwhile.
    const mayGrant = answers.size + this.group.clusters.length >= this.group.quorum;
    if (shows === undefined || (judgement?.culprit === 'either' && !mayGrant)) return; // @mutant undecided-step-forgotten
    if (judgement?.culprit === 'server') {
      record.clock.forget();
      if (shows) {
        record.clock.step = judgement.by;
        record.doubt('its clock has moved');
      }
    } else if (judgement) this.handleLag(record, judgement, before);
    this.readMasters();
  }

  // What the clocks of this client have missed counts as elapsed. So does what a server's clock may have moved instead:
  // its keys have ended early by that. `before` is a sample of the suspect from before that.
  private handleLag(suspect: ServerRecord, { culprit, min, by }: Lag, before: Sample): void {
    const { context, records, now } = this.group;
    const elsewhere = { min: culprit === 'client' ? min : 0, max: by };
    // What the clocks miss from now on, or have missed since the answers that show this, shows in the next ones.
    for (const each of records) {
      const own = each === suspect ? { min, max: by } : elsewhere;
      const since = each === suspect ? before.received : before.sent;
      each.noteLag(own, elsewhere, { since, now });
    }
    this.ttls.repeat();
    context.clockLags(by);
    // After that: an observer may release a lock, which is passed on.
    context.observer.clientClockLagged?.(by);
  }

  // Absent if no earlier sample shows a step. The sample is the one with which the step begins.
  private compare(record: ServerRecord, { sample, steps, answers }: Evidence): [Judgement | undefined, Sample] {
    const { allowance, group } = this;
    const { records } = group;
    // Clusters guard themselves, and no clock is compared with theirs.
    const quorum = quorumOf(records.length);
    // With two masters and this client, each of the three clocks could be the wrong one.
    const answering = [record, ...records.filter((each) => each !== record && answers.has(each))];
    const distinct = this.group.distinctOf(answering); // @mutant twin-judges
    const others = records.length < EARLY_FROM ? [] : distinct.slice(1);
    const latest = answers.get(record);
    let found: [Judgement | undefined, Sample] = [undefined, sample];
    for (const before of steps) {
      // All servers are compared over the same time, or a longer one: a sample from after the step does not show it.
      const known = others.map((other) => {
        const answer = answers.get(other);
        return answer?.clock.movementSince(before.sent, answer.sample);
      });
      const last = latest && movement(before, latest.sample);
      const judgement = judgeStep(movement(before, sample), known, { quorum, allowance, latest: last });
      if (judgement.culprit !== 'either') return [judgement, before];
      // What is uncertain of an older sample may have counted already: a later one shows more.
      if (judgement.by > (found[0]?.by ?? 0)) found = [judgement, before];
    }
    return found;
  }

  // A clock of this client that stumbles and catches up shows a step once. `undefined` without an answer.
  private async stillShows(
    record: ServerRecord,
    before: Sample | undefined,
    allowance: number,
  ): Promise<boolean | undefined> {
    const after = await this.sampleNow(record);
    return after && before !== undefined && movement(before, after.sample).min > allowance;
  }

  private async sampleAll(): Promise<Answers> {
    const { records } = this.group;
    const answers = await Promise.all(records.map((each) => this.sampleNow(each)));
    return new Map(records.flatMap((each, i) => (answers[i] ? [[each, answers[i]]] : [])));
  }

  private async sampleNow(record: ServerRecord): Promise<Answer | undefined> {
    const { clock, settings } = this.group.context;
    const sent = clock.read();
    // As long as a vote may take, so that each master that votes can be compared.
    const limit = Math.max(this.group.patience, settings.masterTimeout);
    const report = await this.group.within(limit, record.server.report());
    if (!report) return undefined;
    const received = clock.read();
    if (record.isOf(report)) return { sample: sampleOf(sent, received, report.time), clock: record.clock };
    if (record.relationOf(report) !== 'known' && record.noteOther(report, received)) this.readMasters();
    return undefined;
  }
}
