import { driftOf } from '../../core/settings/settings.js';
import type { Instant } from '../../core/clock.js';
import type { DataRecord } from './data-record.js';
import { EARLY_FROM } from './new-masters.js';
import type { GuardGroup } from './guard-group.js';
import { judge, type Judgement, movement, type Sample, sampleOf } from './server-clock.js';
import type { TtlAnnouncements } from './ttl-announcements.js';

/** Steps that matter to this ttl are noticed even if this process uses longer ones, since others may not. In milliseconds. */
const SHORT_TTL = 1_000;

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
    if (identity.isSuspect) return false;
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
    const steps = identity.clock.before(sample, allowance);
    const isConfirmed = identity.clock.isConfirmed(sample, allowance);
    identity.suspect('its clock has moved');
    const judgement = await this.compare(identity, sample, steps, allowance);
    const shows =
      judgement.culprit === 'server' && isConfirmed ? await this.stillShows(identity, steps.at(-1), allowance) : false;
    // Several masters show a lag of this client at once: what the others show was handled with the first of them.
    const isHandled = sample.sent <= this.lagHandledAt;
    if (judgement.culprit === 'client' && !isHandled) {
      this.handleLag(judgement.by);
    } else if (judgement.culprit === 'server' && shows) {
      identity.step = judgement.by;
      identity.mistrust('its clock has moved');
    }
    // Without an answer nothing is known yet: with its samples kept, the next answer is judged once more.
    if (shows !== undefined) identity.clock.forget();
    identity.isSuspect = false;
    this.readMasters();
  }

  private handleLag(by: number): void {
    const { context, identities, now } = this.group;
    this.lagHandledAt = now;
    context.observer.clientClockLagged?.(by);
    for (const each of identities) {
      each.clock.forget();
      // The validity of a grant whose request was sent before the lag would be counted by a clock that stood still.
      each.epoch++;
    }
    context.clockLags(by);
  }

  private async compare(
    identity: DataRecord,
    sample: Sample,
    steps: readonly Sample[],
    allowance: number,
  ): Promise<Judgement> {
    const { identities, quorum } = this.group;
    const others = identities.filter((other) => other !== identity);
    const answers = new Map<DataRecord, Sample>();
    await Promise.all(
      others.map(async (other) => {
        const answer = await this.sampleNow(other);
        if (answer) answers.set(other, answer);
      }),
    );
    let judgement = UNKNOWN;
    // With two masters and this client, each of the three clocks could be the wrong one.
    for (const before of identities.length < EARLY_FROM ? [] : steps) {
      // All servers are compared over the same time: a sample from after the step does not show it.
      const known = others.map((other) => {
        const answer = answers.get(other);
        return answer && other.clock.movementSince(before.received, answer);
      });
      judgement = judge(movement(before, sample), known, { quorum, allowance });
      if (judgement.culprit !== 'unknown') break;
    }
    return judgement;
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

  private async sampleNow({ server }: DataRecord): Promise<Sample | undefined> {
    const { clock } = this.group.context;
    const sent = clock.read();
    const report = await this.group.within(this.group.patience, server.report());
    return report && sampleOf(sent, clock.read(), report.time);
  }
}
