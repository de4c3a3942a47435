import type { Clock } from '../../core/clock.js';
import type { LockObserver } from '../../core/observer.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Random } from '../../core/holder.js';
import { driftOf, type Settings } from '../../core/settings/settings.js';
import type { ServerIdentity } from '../replies.js';
import type { ServerRecord } from './server-record.js';
import type { Marker } from './marker.js';

// Bounds of the time limit for one answer of a server about itself, in milliseconds.
const MIN_PATIENCE = 100;
export const MAX_PATIENCE = 1_000;
// Between these bounds, the time limit is this many timeouts of a vote.
const TIMEOUTS = 4;

export function patienceOf({ masterTimeout }: Settings): number {
  return Math.min(MAX_PATIENCE, Math.max(MIN_PATIENCE, TIMEOUTS * masterTimeout));
}

export interface RestartGuardContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  // Names this process in the markers that it writes.
  readonly instance: string;
  readonly clockLags: (milliseconds: number) => void;
}

export type Reports = ReadonlyMap<ServerRecord, ServerIdentity>;

// Of each server one: while two addresses lead to it, they are one master.
// Protocol 8.10
export function distinct(reports: Reports): Reports {
  return new Map(firstOfEach([...reports], ([, { run, marker }]) => run || idOf(marker)));
}

// Without the permission for INFO, a process still sees the run in the marker.
export function idOf(marker: Marker | undefined): string {
  return marker?.run || marker?.nonce || '';
}

function firstOfEach<T>(all: readonly T[], idIn: (one: T) => string): readonly T[] {
  const seen = new Set<string>();
  return all.filter((one) => {
    const id = idIn(one);
    return id === '' || seen.size < seen.add(id).size;
  });
}

// The servers of one restart guard, and what all of its parts need: time, time limits, and whether a lock is held.
export class GuardGroup {
  readonly records: ServerRecord[] = [];
  private locks = 0;
  private attempts = 0;
  // Changes when all attempts under way cease to count.
  private generation = 0;
  // Until when keys of a released lock stay taken, as `minHold` demands. Monotonic, in milliseconds.
  private engagedUntil = -Infinity;
  pendingAnswers = 0;
  // They guard themselves. New is one without data, as long as no partition votes.
  readonly clusters: { votes(): boolean; isNew(): boolean }[] = [];

  constructor(readonly context: RestartGuardContext) {}

  // Monotonic, in milliseconds.
  get now(): number {
    return this.context.clock.read().monotonic;
  }

  get quorum(): number {
    return quorumOf(this.records.length + this.clusters.length);
  }

  get voting(): number {
    let voting = 0;
    for (const { votes } of this.records) if (votes) voting++;
    for (const cluster of this.clusters) if (cluster.votes()) voting++;
    return voting;
  }

  // Masters that have lost nothing, as far as is known: also those whose identity is being checked again.
  get trusted(): number {
    const clusters = this.clusters.filter((cluster) => cluster.votes()).length;
    return (
      clusters + this.distinctOf(this.records.filter(({ state }) => state === 'voting' || state === 'checking')).length
    );
  }

  // One of each server, as far as is known: of several addresses that lead to it, the first of those that are given.
  // Protocol 8.10
  distinctOf(records: readonly ServerRecord[]): readonly ServerRecord[] {
    return firstOfEach(records, ({ marker }) => idOf(marker));
  }

  // This process holds a lock or keeps its keys taken, or has an attempt under way that counts.
  get isEngaged(): boolean {
    if (this.locks + this.attempts > 0) return true;
    return this.engagedUntil > 0 && this.now < this.engagedUntil;
  }

  get owesVeto(): boolean {
    return this.records.some(({ isUnvetoed, server }) => isUnvetoed && server.isConnected);
  }

  // Returns a number that identifies the attempt as long as it counts.
  beginAttempt(): number {
    this.attempts++;
    return this.generation;
  }

  // Returns whether the attempt still counts; if so, it has become a lock.
  confirm(attempt: number): boolean {
    if (attempt !== this.generation) return false;
    this.attempts--;
    this.locks++;
    return true;
  }

  abandon(attempt: number): void {
    if (attempt === this.generation) this.attempts--;
  }

  // Too few masters can vote: no attempt under way may succeed, and none stands for a lock.
  voidAttempts(): void {
    this.generation++;
    this.attempts = 0;
  }

  // `keptFor`: milliseconds for which the keys of the lock stay taken.
  disengage(keptFor: number): void {
    this.locks--;
    if (keptFor > 0) this.engagedUntil = Math.max(this.engagedUntil, this.now + keptFor);
  }

  // In milliseconds, if no lock has a longer ttl.
  quarantineFor(ttl: number): number {
    return Math.ceil(ttl + driftOf(this.context.settings, ttl)); // @mutant quarantine-too-short
  }

  // In milliseconds.
  quarantineOf({ server }: ServerRecord, ttl: number): number {
    return this.quarantineFor(ttl) + server.handover;
  }

  // The time limit for one answer, in milliseconds: a server that hangs does not delay what the others report.
  get patience(): number {
    return patienceOf(this.context.settings);
  }

  // Resolves with `undefined` if the promise rejects or takes longer than the limit, in milliseconds.
  within<T>(limit: number, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      this.pendingAnswers++;
      let isOver = false;
      const end = (value: T | undefined): void => {
        if (isOver) return;
        isOver = true;
        this.pendingAnswers--;
        timer.cancel();
        resolve(value);
      };
      const timer = this.context.clock.schedule(limit, () => end(undefined)).unref();
      promise.then(end, () => end(undefined));
    });
  }

  // Once for each refusal of a marker.
  announceRefusal(record: ServerRecord): void {
    const { server, refusal } = record;
    if (refusal !== undefined && refusal !== record.announcedRefusal) {
      this.context.observer.masterRefused?.(server.name, record.reasonNow);
    }
    record.announcedRefusal = refusal;
  }

  announce(record: ServerRecord): void {
    const { observer, clock } = this.context;
    const { name } = record.server;
    if (record.votes) {
      if (record.isAnnounced || record.announcedRefusal !== undefined) observer.masterVotesAgain?.(name);
      record.isAnnounced = false;
      return;
    }
    if (record.isAnnounced) return;
    const quarantine = record.quarantineAt(clock.read());
    // A clock that was set back makes an old marker look young: its wait is over.
    if (!quarantine || quarantine.remaining <= 1) return;
    record.isAnnounced = true;
    observer.masterQuarantined?.(name, quarantine.reason, quarantine.remaining);
  }
}
