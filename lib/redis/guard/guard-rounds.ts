import type { Instant } from '../../core/clock.js';
import type { ServerIdentity } from '../identity.js';
import { type DataRecord, reasonFor } from './data-record.js';
import type { GuardGroup, Reports } from './guard-group.js';
import { FIRST } from './marker.js';
import type { MarkerWriter } from './marker-writer.js';
import type { NewMasters } from './new-masters.js';
import type { StepJudge } from './step-judge.js';

interface Parts {
  readonly group: GuardGroup;
  readonly writer: MarkerWriter;
  readonly steps: StepJudge;
  readonly newMasters: NewMasters;
}

/** Acts on the reports of all masters that one round of reading gave. */
export class GuardRounds {
  constructor(private readonly parts: Parts) {}

  /** Resolves with the milliseconds after which the masters have to be read again; `undefined` when they need not be. */
  async actOn(reports: Reports, asked: Instant): Promise<number | undefined> {
    const { group, writer, steps } = this.parts;
    let again = false;
    const wasUnknown = new Set(group.identities.filter(({ unknownSince }) => unknownSince !== undefined));
    for (const [identity, report] of reports) {
      // A server that is being judged or accused is read again afterwards.
      if (identity.isSuspect) continue;
      if (await this.recognize(identity, report, asked)) again = true;
      steps.sampled(identity, asked, report.time);
    }
    if (group.trusted < group.quorum) group.voidAttempts();
    for (const [identity, report] of reports) {
      if (identity.unknownSince === undefined) continue;
      // Protocol 8.3
      // The reports of the others count only if they were read after it was known that this one's data is unknown.
      const areRecent = wasUnknown.has(identity);
      if (!areRecent || (await writer.quarantine(identity, report, reports, asked))) again = true;
    }
    const attended = [...reports].map(([identity, report]) => writer.attend(identity, report, reports, asked));
    if ((await Promise.all(attended)).includes(true)) again = true;
    const delay = await this.greet(reports, asked);
    return again ? 0 : delay;
  }

  /** Lets new masters vote, and marks them as the first ones. Resolves with the milliseconds until then. */
  private async greet(reports: Reports, asked: Instant): Promise<number | undefined> {
    const { newMasters, writer } = this.parts;
    const first = newMasters.untilFirst(reports, asked);
    const vote = newMasters.untilVote(reports, asked);
    const changes = [...reports].map(async ([identity, report]) => {
      const begins = vote === 0 && identity.isYoungAt(report);
      const change = { ...(first === 0 && { first: FIRST }), ...(begins && { from: report.time }) };
      if (first === 0 || begins) await writer.change(identity, report, change);
    });
    await Promise.all(changes);
    return first === undefined || vote === undefined ? (first ?? vote) : Math.min(first, vote);
  }

  /** Accepts the marker of known data, and stops counting the votes of unknown data. */
  accept(identity: DataRecord, report: ServerIdentity, asked: Instant): void {
    const { group } = this.parts;
    if (identity.isSuspect || identity.step !== undefined) return;
    const relation = identity.relationOf(report);
    if (relation !== 'known') {
      identity.isUnknown ||= relation === 'unknown';
      if (identity.votes) identity.mistrust(reasonFor(report, identity.marker));
      return;
    }
    const { isEngaged } = group;
    const isFirstSight = report.marker?.nonce !== identity.nonce;
    const isTwin = group.identities.some((other) => other !== identity && other.nonce === report.marker?.nonce);
    if (report.marker && !isTwin) identity.noteGeneration(report.marker.generation);
    const voted = identity.votes;
    // The data was replaced while this process held a lock: a veto makes the lock known to the others.
    if (isFirstSight) identity.markerChangedWhileHolding = isEngaged && identity.nonce !== '';
    identity.accept(report, asked, group.context.clock.read());
    // A lock from before may have a ttl that was never announced to this marker.
    if (isFirstSight) identity.mustExtendQuarantine = isEngaged && !identity.votes;
    group.announce(identity);
    if (!voted && identity.votes) identity.server.onVoting();
  }

  /** Finds out whether the data of a server is known. Returns whether the masters have to be read again. */
  private async recognize(identity: DataRecord, report: ServerIdentity, asked: Instant): Promise<boolean> {
    const { group, writer } = this.parts;
    const relation = identity.relationOf(report);
    if (relation === 'unknown') {
      const { context } = group;
      identity.doubt(report, context.clock.read(), group.quarantineOf(identity, context.settings.ttl));
      return false;
    }
    if (relation === 'renamed') return writer.change(identity, report, { run: report.run, replid: report.replid });
    const again = identity.step !== undefined && (await writer.quarantineForClockJump(identity, report, identity.step));
    if (identity.step === undefined) this.accept(identity, report, asked);
    return again;
  }
}
