import type { Clock } from '../../core/clock.js';
import type { LockObserver } from '../../core/observer.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Random } from '../../core/random.js';
import { driftOf, type Settings } from '../../core/settings/settings.js';
import type { ServerIdentity } from '../identity.js';
import type { DataRecord } from './data-record.js';

/** Smallest time limit for one answer of a server about itself, in milliseconds. */
const MIN_PATIENCE = 100;
/** Largest time limit for one answer of a server about itself, in milliseconds. */
export const MAX_PATIENCE = 1_000;
/** Between these bounds, the time limit is this many timeouts of a vote. */
const TIMEOUTS = 4;

export interface RestartGuardContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  /** Names this process in the markers that it writes. */
  readonly instance: string;
  /** Called with the milliseconds by which this client's own clock turns out to be behind. */
  readonly clockLags: (milliseconds: number) => void;
}

/** The reports of the servers that answered in one round. */
export type Reports = ReadonlyMap<DataRecord, ServerIdentity>;

/** The servers of one restart guard, and what all of its parts need: time, time limits, and whether a lock is held. */
export class GuardGroup {
  readonly identities: DataRecord[] = [];
  private locks = 0;
  /** Number of attempts under way that count. */
  private attempts = 0;
  /** Changes when all attempts under way cease to count. */
  private generation = 0;
  /** Until when keys of a released lock stay taken, as `minHold` demands. */
  private engagedUntil = -Infinity;
  /** Number of answers that have neither arrived nor run out of time. */
  pendingAnswers = 0;
  /** Whether each cluster votes. Clusters guard themselves. */
  readonly clusters: (() => boolean)[] = [];

  constructor(readonly context: RestartGuardContext) {}

  /** Monotonic time of this process, in milliseconds. */
  get now(): number {
    return this.context.clock.read().monotonic;
  }

  get quorum(): number {
    return quorumOf(this.identities.length + this.clusters.length);
  }

  /** Number of masters whose votes count. */
  get voting(): number {
    let voting = 0;
    for (const { votes } of this.identities) if (votes) voting++;
    for (const votes of this.clusters) if (votes()) voting++;
    return voting;
  }

  /** Number of masters that have lost nothing, as far as is known: also those whose identity is being checked again. */
  get trusted(): number {
    const clusters = this.clusters.filter((votes) => votes()).length;
    return clusters + this.identities.filter(({ votes, isChecked }) => votes || isChecked).length;
  }

  /** Whether this process holds a lock or keeps its keys taken, or has an attempt under way that counts. */
  get isEngaged(): boolean {
    if (this.locks + this.attempts > 0) return true;
    return this.engagedUntil > 0 && this.now < this.engagedUntil;
  }

  /** Registers an attempt. Returns a number that identifies it as long as it counts. */
  beginAttempt(): number {
    this.attempts++;
    return this.generation;
  }

  /** Returns whether the attempt still counts; if so, it has become a lock. */
  confirm(attempt: number): boolean {
    if (attempt !== this.generation) return false;
    this.attempts--;
    this.locks++;
    return true;
  }

  abandon(attempt: number): void {
    if (attempt === this.generation) this.attempts--;
  }

  /** Too few masters can vote: no attempt under way may succeed, and none stands for a lock. */
  voidAttempts(): void {
    this.generation++;
    this.attempts = 0;
  }

  /** @param keptFor milliseconds for which the keys of the lock stay taken */
  disengage(keptFor: number): void {
    this.locks--;
    if (keptFor > 0) this.engagedUntil = Math.max(this.engagedUntil, this.now + keptFor);
  }

  /** How long a quarantine lasts, in milliseconds, if no lock has a longer ttl. */
  quarantineFor(ttl: number): number {
    return Math.ceil(ttl + driftOf(this.context.settings, ttl)); // @mutant quarantine-too-short
  }

  /** The same for one server, in milliseconds. */
  quarantineOf({ server }: DataRecord, ttl: number): number {
    return this.quarantineFor(ttl) + server.handover;
  }

  /** The time limit for one answer, in milliseconds: a server that hangs does not delay what the others report. */
  get patience(): number {
    return Math.min(MAX_PATIENCE, Math.max(MIN_PATIENCE, TIMEOUTS * this.context.settings.masterTimeout));
  }

  /** Resolves with `undefined` if the promise rejects or takes longer than the limit, in milliseconds. */
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

  /** Notifies the observer when a server begins to be quarantined, and when it votes again. */
  announce(identity: DataRecord): void {
    const { observer, clock } = this.context;
    const { name } = identity.server;
    if (identity.votes) {
      if (identity.isAnnounced) observer.masterVotesAgain?.(name);
      identity.isAnnounced = false;
      return;
    }
    if (identity.isAnnounced) return;
    const quarantine = identity.quarantineAt(clock.read());
    if (!quarantine) return;
    identity.isAnnounced = true;
    observer.masterQuarantined?.(name, quarantine.reason, quarantine.remaining);
  }
}
