import type { Instant } from '../../core/clock.js';
import type { ServerIdentity } from '../identity.js';
import type { DataIdentity } from './data-identity.js';
import type { EarlyVote } from './early-vote.js';
import type { GuardGroup, Reports } from './guard-group.js';
import { FIRST } from './marker.js';
import type { MarkerWriter } from './marker-writer.js';
import type { NewInstallation } from './new-installation.js';
import { reasonFor } from './relation.js';
import type { StepJudge } from './step-judge.js';

interface Parts {
  readonly group: GuardGroup;
  readonly writer: MarkerWriter;
  readonly steps: StepJudge;
  readonly earlyVote: EarlyVote;
  readonly installation: NewInstallation;
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
      if (identity.nonce !== '' && identity.step === undefined) steps.sampled(identity, asked, report.time);
    }
    if (group.trusted < group.quorum) group.voidAttempts();
    for (const [identity, report] of reports) {
      if (identity.unknownSince === undefined) continue;
      // The reports of the others count only if they were read after it was known that this one's data is unknown.
      const areRecent = wasUnknown.has(identity);
      if (!areRecent || (await writer.quarantine(identity, report, reports, asked))) again = true;
    }
    const attended = [...reports].map(([identity, report]) => writer.attend(identity, report, reports, asked));
    if ((await Promise.all(attended)).includes(true)) again = true;
    if (await this.welcome(reports)) again = true;
    const delay = await this.voteEarly(reports, asked);
    return again ? 0 : delay;
  }

  /** Notes on new masters that they are the first. Resolves with whether they have to be read again. */
  private async welcome(reports: Reports): Promise<boolean> {
    const { installation, writer } = this.parts;
    const finding = installation.observe(reports);
    if (finding !== 'new') return finding === 'read again';
    await Promise.all([...reports].map(([identity, report]) => writer.change(identity, report, { first: FIRST })));
    return true;
  }

  /** Accepts the marker of known data, and stops counting the votes of unknown data. */
  accept(identity: DataIdentity, report: ServerIdentity, asked: Instant): void {
    const { group } = this.parts;
    if (identity.isSuspect || identity.step !== undefined) return;
    if (identity.relationOf(report, false) !== 'known') {
      if (identity.votes) identity.mistrust(reasonFor(report, identity.marker));
      return;
    }
    const { isEngaged } = group;
    const isFirstSight = report.marker?.nonce !== identity.nonce;
    const voted = identity.votes;
    // The data was replaced while this process held a lock: a veto makes the lock known to the others.
    if (isFirstSight) identity.wasMetEngaged = isEngaged && identity.nonce !== '';
    identity.accept(report, { asked, received: group.context.clock.read() }, report.marker?.wait ?? 0);
    // A lock from before may have a ttl that was never announced to this marker.
    if (isFirstSight) identity.owesLengthening = isEngaged && !identity.votes;
    group.announce(identity);
    if (!voted && identity.votes) identity.server.onVoting();
  }

  /** Finds out whether the data of a server is known. Returns whether the masters have to be read again. */
  private async recognize(identity: DataIdentity, report: ServerIdentity, asked: Instant): Promise<boolean> {
    const { writer } = this.parts;
    const isOtherRun = report.marker === undefined || report.marker.run !== report.run;
    const syncsAlways = isOtherRun && !report.wasPromoted && (await writer.syncsAlways(identity, report));
    const relation = identity.relationOf(report, syncsAlways);
    if (relation === 'unknown') {
      identity.doubt(report, this.parts.group.context.clock.read());
      return false;
    }
    if (relation === 'renamed') return writer.rename(identity, report, syncsAlways);
    const again = identity.step !== undefined && (await writer.accuse(identity, report, identity.step));
    if (identity.step === undefined) this.accept(identity, report, asked);
    return again;
  }

  private async voteEarly(reports: Reports, asked: Instant): Promise<number | undefined> {
    const { group, earlyVote } = this.parts;
    const progress = earlyVote.observe(reports, asked);
    if (progress === undefined) return undefined;
    if ('readAfter' in progress) return progress.readAfter;
    const ends = [...reports].filter(([identity]) => progress.vote.includes(identity));
    await Promise.all(
      ends.map(([identity, report]) =>
        group.within(group.patience, identity.server.mark(report, { from: report.time })),
      ),
    );
    return 0;
  }
}
