import type { Instant } from '../../core/clock.js';
import type { ServerIdentity } from '../replies.js';
import type { ServerRecord } from './server-record.js';
import { EXPIRES_EARLY, generationFrom } from '../../core/state/state-entry.js';
import { type GuardGroup, MAX_PATIENCE, type Reports } from './guard-group.js';
import type { TtlAnnouncements } from './ttl-announcements.js';
import { announcementOf, EMPTY, type Marker, type MarkerChange } from './marker.js';
import { EARLY_AFTER } from './new-masters.js';

// Shortest wait of new masters in milliseconds: they have to be known as the first ones before they vote.
export const SHORTEST_GUESS = EARLY_AFTER + 400;

// The largest ttl that a lock from before a loss of data may have, and the quarantine that it needs, in milliseconds.
interface LongestTtl {
  readonly ttl: number;
  // No process has announced it.
  readonly isGuess: boolean;
  readonly length: number;
}

// Writes the markers: for new data, for a quarantine, for a veto, and for the end of a quarantine. Each method resolves
// with whether the masters have to be read again, because a marker may have changed.
export class MarkerWriter {
  constructor(
    private readonly group: GuardGroup,
    private readonly ttls: TtlAnnouncements,
  ) {}

  async change(record: ServerRecord, report: ServerIdentity, change: MarkerChange): Promise<boolean> {
    // Another process may have written first: the next reading shows which change took effect.
    const isChanged = await this.group.within(this.group.patience, record.server.mark(report, change));
    return isChanged !== undefined;
  }

  async quarantine(record: ServerRecord, report: ServerIdentity, reports: Reports, asked: Instant): Promise<boolean> {
    const { group } = this;
    // Protocol 8.3
    const longest = this.longestTtl(record, reports, asked);
    if (longest === undefined) return false;
    const { ttl, isGuess, length } = longest;
    const from = report.time + length;
    const isFirstKnown = !report.marker && record.nonce === '';
    const isWritten = await this.change(record, report, {
      ...{ run: report.run, replid: report.replid },
      ...{ ttls: isGuess ? '' : announcementOf(ttl, from), known: ttlKnownToOthers(record, reports, ttl) },
      ...{ guess: isGuess ? 1 : 0, from },
      ...this.signature(report, record.reason),
      ...{ generation: generationFrom(group.context.random.token(), report.time), first: isFirstKnown ? EMPTY : '' },
    });
    // Its wait begins when it can be written.
    if (!isWritten) record.wait.limit(group.context.clock.read(), length);
    group.announceRefusal(record);
    return isWritten;
  }

  // The clock moved forward for all clients: the keys of the server expired early.
  async quarantineForClockJump(record: ServerRecord, report: ServerIdentity, by: number): Promise<boolean> {
    const { marker } = report;
    if (!marker) return false;
    // Protocol 8.11
    const reason = `its clock jumped forward by ${Math.round(by)} ms`;
    // Announcements that have ended by the clock that jumped may be gone already. No ttl in use is larger than `known`.
    const ttl = Math.max(marker.storedTtl, marker.knownTtl, this.ttls.usedTtl, this.group.context.settings.ttl);
    const from = report.time + this.group.quarantineOf(record, ttl);
    // States may have expired early, too.
    const generation = generationFrom(this.group.context.random.token(), report.time);
    const states = by < EXPIRES_EARLY ? {} : { generation, first: '' };
    const change = { ...this.signature(report, reason), vetoed: 1, from, ...states } as const;
    const isWritten = await this.change(record, report, change);
    this.group.announceRefusal(record);
    return isWritten;
  }

  // A young marker asks for a veto while this process holds a lock, and for an end after the longest quarantine.
  async maintain(record: ServerRecord, report: ServerIdentity, reports: Reports, asked: Instant): Promise<boolean> {
    const { group } = this;
    const { marker } = report;
    const { isSuspect, otherData, state } = record;
    const isOther = otherData !== undefined || state === 'unknown' || marker?.nonce !== record.nonce;
    if (!marker || isSuspect || isOther) return false;
    if (record.hasLostData && marker.wasEmpty) return this.change(record, report, { first: '' }); // @mutant no-objection
    const isYoung = record.isYoungAt(report);
    // Before all else: for a process far away, each step takes a good part of the time until an early vote.
    // Protocol 8.5
    const owesVeto = group.isEngaged && !marker.isVetoed && (isYoung || record.markerChangedWhileHolding); // @mutant no-veto-1
    if (owesVeto) return this.change(record, report, { vetoed: 1 });
    // Protocol 8.5
    if (isYoung && record.mustExtendQuarantine) {
      const took = this.ttls.beat(record, {
        ttl: this.ttls.usedTtl + record.server.handover,
        lengthens: true,
        known: 0,
      });
      record.mustExtendQuarantine = (await group.within(group.patience, took)) !== true;
      return true;
    }
    if (isYoung && !record.votes) {
      const since = record.seenSince ?? asked;
      // Protocol 8.2
      // By this client's own clock, every lock has ended: a `from` that a wrong clock set too late does no harm. The
      // marker stays as it is, because the wrong clock may be the client's.
      const hasWaited = asked.monotonic - since.monotonic > marker.wait; // @mutant quarantine-ended-by-the-wall-clock
      if (hasWaited && record.step === undefined) {
        record.endWait();
        group.announce(record);
        return false;
      }
    }
    if (!isYoung || record.votes || !marker.isGuess) return false;
    return (await this.lengthenGuess(record, report, reports)) || this.improveGuess(record, report, reports);
  }

  // A holder that reaches one young master only lengthens its quarantine: the others must not end theirs earlier.
  private async lengthenGuess(record: ServerRecord, report: ServerIdentity, reports: Reports): Promise<boolean> {
    const { marker } = report;
    const others = markersOfOthers(record, reports).filter(({ marker: { isVetoed }, isYoung }) => isYoung && isVetoed);
    const ttl = Math.max(0, ...others.map((other) => other.marker.storedTtl));
    const from = (marker?.writtenAt ?? 0) + this.group.quarantineOf(record, ttl);
    if (!marker || from <= marker.from) return false;
    return this.change(record, report, { from, ttls: announcementOf(Math.max(ttl, marker.storedTtl), from) });
  }

  // A quarantine that began before any master could report the ttls in use ends like one that begins now.
  private async improveGuess(record: ServerRecord, report: ServerIdentity, reports: Reports): Promise<boolean> {
    const voting = [...reports].flatMap(([{ votes }, { marker }]) => (votes && marker ? [marker] : []));
    if (voting.length === 0) return false;
    const ttl = Math.max(this.heldTtl, report.marker?.storedTtl ?? 0, this.ttlInUse(voting));
    const from = report.time + this.group.quarantineOf(record, ttl);
    if (from >= (report.marker?.from ?? 0)) return false;
    return this.change(record, report, { from, guess: 0, ttls: announcementOf(ttl, from) });
  }

  private longestTtl(record: ServerRecord, reports: Reports, asked: Instant): LongestTtl | undefined {
    const { group } = this;
    const others = markersOfOthers(record, reports);
    // A master that is quarantined because nothing was known knows no more than this one.
    const sources = others.filter(({ marker, isYoung }) => !(isYoung && marker.isGuess)).map(({ marker }) => marker);
    if (sources.length > 0) {
      const ttl = Math.max(this.heldTtl, this.ttlInUse(sources));
      return { ttl, isGuess: false, length: group.quarantineOf(record, ttl) };
    }
    const guesses = others.map(({ marker }) => marker.knownTtl);
    const ttl = Math.max(this.heldTtl, record.knownTtl, group.context.settings.maxTtl, ...guesses);
    const length = group.quarantineOf(record, ttl);
    // A process that uses longer ttls gets the time to lengthen the quarantine.
    const guess = { ttl, isGuess: true, length: Math.max(length, SHORTEST_GUESS) };
    if (reports.size === group.records.length) return guess;
    // Without a quorum there is nothing to vote on, and another master that can be read later may know of longer ttls.
    if (reports.size < group.quorum) return undefined;
    // A majority has lost its data, and the others do not answer: first wait, so that a process that knows of longer
    // ttls can write the marker.
    const since = record.unknownSince ?? asked;
    const waited = group.now - since.monotonic;
    if (waited >= length) return { ...guess, length: SHORTEST_GUESS };
    record.wait.limit(since, length + SHORTEST_GUESS);
    // At boot, the others may be connected a moment later.
    if (waited > MAX_PATIENCE) group.announce(record);
    return undefined;
  }

  // In milliseconds, according to the markers of other masters.
  // Protocol 8.3
  private ttlInUse(others: readonly Marker[]): number {
    const { records, context } = this.group;
    const announced = Math.max(context.settings.ttl, ...others.map(({ maxTtl }) => maxTtl));
    // Each lock was announced on a quorum, but perhaps on a quorum of a shorter list: while a master is added, instances
    // with the old list run. The `maxTtl` of this process does not matter: it does not bound the locks of other processes.
    const areAll = others.length >= records.length - 1;
    return areAll ? announced : Math.max(announced, ...others.map(({ knownTtl }) => knownTtl));
  }

  // Of this process's own locks, in milliseconds.
  private get heldTtl(): number {
    return this.group.isEngaged ? this.ttls.usedTtl : 0;
  }

  private signature(report: ServerIdentity, reason: string): MarkerChange {
    const { random, instance } = this.group.context;
    const vetoed = this.group.isEngaged ? 1 : 0; // @mutant no-veto-2
    return { nonce: random.token(), vetoed, by: instance, at: report.time, why: reason };
  }
}

interface OtherMarker {
  readonly marker: Marker;
  readonly isYoung: boolean;
}

function markersOfOthers(record: ServerRecord, reports: Reports): readonly OtherMarker[] {
  return [...reports].flatMap(([other, report]) => {
    const { marker } = report;
    if (other === record || other.state === 'unknown' || !marker) return [];
    return [{ marker, isYoung: other.isYoungAt(report) }];
  });
}

function ttlKnownToOthers(record: ServerRecord, reports: Reports, otherwise: number): number {
  const known = markersOfOthers(record, reports).map(({ marker }) => marker.knownTtl);
  return known.length > 0 ? Math.max(...known) : otherwise;
}
