import { driftOf } from '../../core/settings/settings.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Instant } from '../../core/clock.js';
import type { DataRecord } from './data-record.js';
import { EARLY_FROM } from './new-masters.js';
import type { GuardGroup } from './guard-group.js';
import { judge, type Judgement, movement, type Sample, sampleOf, type ServerClock } from './server-clock.js';
import type { TtlAnnouncements } from './ttl-announcements.js';

/** Steps that matter to this ttl are noticed even if this process uses longer ones, since others may not. In milliseconds. */
const SHORT_TTL = 1_000;

/**
 * A step whose cause stays unknown for so long is forgotten, in milliseconds: masters that did not answer may have samples from
 * before it, and a connection that hangs is replaced in this time.
 */
const UNDECIDED_FOR = 10_000;
const UNKNOWN: Judgement = { culprit: 'unknown' };

/** Notices steps of the masters' clocks, and finds out whether the master or this client is wrong. */
export class StepJudge {
  /** When a lag of this client was last noticed, by its monotonic clock. */
  private lagHandledAt = -Infinity;

  constructor(
    private readonly group: GuardGroup,
    private readonly ttls: TtlAnnouncements,
    /** Reads all masters again. */
    private readonly readMasters: () => void,
  ) {}

  /** Takes the time of an answer. Returns whether what the server granted with it may count. */
  sampled(identity: DataRecord, sent: Instant, time: number): boolean {
    const sample = sampleOf(sent, this.group.context.clock.read(), time);
    const { allowance } = this;
    // Sent before a lag was handled, it shows that lag, or a part of it, or nothing: the samples are shifted already.
    if (identity.isSuspect || sample.sent < this.lagHandledAt) return false;
    // Protocol 8.11
    if (identity.clock.movedForward(sample) > allowance) {
      void this.judge(identity, sample);
      return false;
    }
    if (identity.clock.movedBack(sample, allowance)) {
      identity.clock.forget();
      // An older state of the machine may have been restored: the marker shows whether its data is older, too.
      identity.mistrust('its clock was set back');
      this.readMasters();
    }
    identity.clock.keep(sample);
    return true;
  }

  /** How far a clock may move before a key of the smallest ttl in use expires early, in milliseconds. */
  private get allowance(): number {
    return driftOf(this.group.context.settings, Math.min(this.ttls.smallestTtl, SHORT_TTL));
  }

  private async judge(identity: DataRecord, sample: Sample): Promise<void> {
    const { allowance } = this;
    identity.suspect('its clock has moved');
    const answers = await this.sampleAll();
    // Several masters show a lag of this client at once: it was handled with the first of them, and the samples are shifted.
    const steps = identity.clock.before(sample, allowance);
    const isConfirmed = identity.clock.isConfirmed(sample, allowance);
    const { judgement, since } = this.compare(identity, sample, { answers, steps, allowance });
    const shows =
      judgement.culprit === 'server' && isConfirmed ? await this.stillShows(identity, steps.at(-1), allowance) : false;
    identity.isSuspect = false;
    if (judgement.culprit === 'client') this.handleLag(judgement, since);
    else if (judgement.culprit === 'server' && shows) {
      identity.step = judgement.by;
      identity.mistrust('its clock has moved');
      identity.clock.forget();
    } else if (steps.length > 0) {
      // With its samples kept, the next answer is judged anew.
      const isLeftOpen =
        judgement.culprit === 'unknown' ? this.isOpen(identity.clock, answers.size) : shows === undefined;
      if (isLeftOpen) return; // @mutant undecided-step-forgotten
      identity.clock.forget();
    }
    this.readMasters();
  }

  /** Whether a step whose cause is unknown may be judged better later. */
  private isOpen(clock: ServerClock, answers: number): boolean {
    const { identities, clusters, quorum, now } = this.group;
    // With two masters and this client, each of the three clocks could be the wrong one.
    if (identities.length < EARLY_FROM) return false;
    // As long as no quorum answers that could grant anything, forgetting helps nothing.
    if (answers + clusters.length < quorum) clock.undecidedSince = undefined;
    else clock.undecidedSince ??= now;
    return clock.undecidedSince === undefined || now - clock.undecidedSince < UNDECIDED_FOR;
  }

  /** @param since the last moment at which this client was certainly right */
  private handleLag({ least, by }: Extract<Judgement, { culprit: 'client' }>, since: number): void {
    const { context, identities, now } = this.group;
    this.lagHandledAt = now;
    // What the clocks miss from now on, or have missed since the answers that show this, shows in the next ones.
    for (const each of identities) each.noteLag({ least, most: by }, since);
    this.ttls.repeat();
    context.clockLags(by);
    // After that: an observer may release a lock, which is passed on.
    context.observer.clientClockLagged?.(by);
  }

  /** How many of the servers make up a majority: clusters guard themselves, and no clock is compared with theirs. */
  private get quorum(): number {
    return quorumOf(this.group.identities.length);
  }

  private compare(
    identity: DataRecord,
    sample: Sample,
    options: {
      readonly answers: ReadonlyMap<DataRecord, Sample>;
      readonly steps: readonly Sample[];
      readonly allowance: number;
    },
  ): { readonly judgement: Judgement; readonly since: number } {
    const { identities } = this.group;
    const { answers, steps, allowance } = options;
    if (identities.length < EARLY_FROM) return { judgement: UNKNOWN, since: -Infinity };
    const others = identities.filter((other) => other !== identity);
    const latest = answers.get(identity);
    let judgement = UNKNOWN;
    let since = -Infinity;
    for (const before of steps) {
      since = before.received;
      // All servers are compared over the same time: a sample from after the step does not show it.
      const known = others.map((other) => {
        const answer = answers.get(other);
        return answer && other.clock.movementSince(since, answer);
      });
      const last = latest && movement(before, latest);
      judgement = judge(movement(before, sample), known, { quorum: this.quorum, allowance, latest: last });
      if (judgement.culprit !== 'unknown') break;
    }
    return { judgement, since };
  }

  /**
   * Whether the next answer shows the step, too: a clock of this client that stumbles and catches up shows it once.
   * `undefined` without an answer.
   */
  private async stillShows(
    identity: DataRecord,
    before: Sample | undefined,
    allowance: number,
  ): Promise<boolean | undefined> {
    const after = await this.sampleNow(identity);
    return after && before !== undefined && movement(before, after).least > allowance;
  }

  private async sampleAll(): Promise<ReadonlyMap<DataRecord, Sample>> {
    const answers = new Map<DataRecord, Sample>();
    await Promise.all(
      this.group.identities.map(async (each) => {
        const answer = await this.sampleNow(each);
        if (answer) answers.set(each, answer);
      }),
    );
    return answers;
  }

  private async sampleNow({ server }: DataRecord): Promise<Sample | undefined> {
    const { clock } = this.group.context;
    const sent = clock.read();
    const report = await this.group.within(this.group.patience, server.report());
    return report && sampleOf(sent, clock.read(), report.time);
  }
}
