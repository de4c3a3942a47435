import { driftOf, type Settings } from '../../lib/settings/settings.js';
import type { SimNode } from './node.js';
import { type Fault, type FaultKind, type Schedule } from './schedule.js';

/** Faults that affect one process only. */
export const ON_CLIENTS: readonly FaultKind[] = [
  ...(['pause', 'suspend', 'stun', 'slew', 'stumble', 'wallJump', 'die', 'leave'] as const),
];
/** Faults that affect masters, but cost no process a lock. */
const HARMLESS: readonly FaultKind[] = ['scriptFlush'];

/**
 * Records which assumptions of the protocol a run has broken so far, in words. While none is broken, the run demands
 * mutual exclusion.
 *
 * An assumption about the clocks of one client concerns that client alone: the client is sick, and the run demands
 * mutual exclusion of all others.
 */
export class Assumptions {
  readonly broken = new Set<string>();
  /** Whether the rates of all clocks are within `driftFactor` of each other. */
  readonly ratesAreNormal: boolean;
  /**
   * Whether no fault that could cost a lock happens to any master or on the link to it, whatever happens to clients.
   */
  readonly mastersAreFine: boolean;
  private readonly sick = new Map<number, string>();
  private readonly disturbed: ReadonlySet<number>;
  private readonly suspended = new Set<number>();
  private readonly setBack = new Set<number>();
  /** The part of each ttl that is given up for drift covers a clock that is set forward by this much, in milliseconds. */
  private readonly harmless: number;
  /** By how much the clocks of masters were set forward, in milliseconds. */
  private forward = 0;
  /** The masters that a fault has hit so far. Several addresses may lead to one. */
  private readonly hit = new Set<number>();

  constructor(
    private readonly schedule: Schedule,
    private readonly settings: Settings,
  ) {
    const { servers, processes, faults, operations } = schedule;
    const rates = [...servers, ...processes].map(({ rate }) => rate);
    const apart = Math.max(...rates) - Math.min(...rates);
    this.ratesAreNormal = apart <= settings.driftFactor;
    if (!this.ratesAreNormal) this.broken.add('clocks run at rates that differ by more than driftFactor');
    this.mastersAreFine = faults.every(({ kind }) => ON_CLIENTS.includes(kind) || HARMLESS.includes(kind));
    this.disturbed = new Set([
      ...faults.flatMap((fault) => ('process' in fault ? [fault.process] : [])),
      ...operations.flatMap(({ process, blocks }) => (blocks ? [process] : [])),
    ]);
    const smallest = Math.min(settings.ttl, ...operations.flatMap(({ ttl, newTtl = ttl }) => [ttl, newTtl]));
    this.harmless = driftOf(settings, smallest) - 2 - smallest * apart;
  }

  /** Whether the clocks of a process are so wrong that it misjudges its own locks. */
  isSick({ index }: SimNode): boolean {
    return this.sick.has(index);
  }

  get ailments(): readonly string[] {
    return [...new Set(this.sick.values())];
  }

  /** Whether no fault touches this process or any master: whatever others do, it keeps its locks and gets new ones. */
  isHealthy({ index }: SimNode): boolean {
    return this.mastersAreFine && this.ratesAreNormal && !this.disturbed.has(index);
  }

  /**
   * The same if faults have hit a minority of the masters so far: a process keeps the locks that were on all masters before
   * the first of them, and gets new ones.
   */
  isHealthyOnAMajority({ index }: SimNode): boolean {
    const isMinority = this.hit.size < this.schedule.servers.length / 2;
    return isMinority && this.ratesAreNormal && !this.disturbed.has(index);
  }

  get hasHitMasters(): boolean {
    return this.hit.size > 0;
  }

  wasHit(server: number): boolean {
    return this.hit.has(server);
  }

  /** Whether the clock of a master can be set forward by this much without a loss. */
  isHarmless(by: number): boolean {
    return by <= this.harmless;
  }

  note(fault: Fault): void {
    const { restartGuard, driftFactor } = this.settings;
    const isHarmless = HARMLESS.includes(fault.kind) || 'process' in fault;
    if (fault.kind === 'loseAll') this.schedule.servers.forEach((_, server) => this.hit.add(server));
    else if ('server' in fault && !isHarmless) this.hit.add(fault.server);
    if (fault.kind === 'twin') this.hit.add(fault.other);
    switch (fault.kind) {
      case 'crash':
        if (fault.data !== 'kept') this.noteLoss(restartGuard);
        return;
      case 'loseAll':
      case 'flush':
        this.noteLoss(restartGuard);
        return;
      case 'spare':
        this.noteLoss(restartGuard);
        if (fault.connections === 'kept') this.broken.add('a connection outlived the server that it led to');
        return;
      case 'twin':
        if (!restartGuard) this.broken.add('an address led to another master, and there is no restart guard');
        return;
      case 'evict':
        this.broken.add('a master dropped a key that was held');
        return;
      case 'serverJump':
        this.forward += Math.max(0, fault.by);
        if (this.forward > this.harmless) this.broken.add(`a master's clock was set forward`);
        return;
      case 'stun':
        this.sick.set(fault.process, 'the clocks of a client stood still');
        return;
      case 'slew':
        if (fault.by > driftFactor) this.sick.set(fault.process, 'the clocks of a client were slewed');
        return;
      case 'stumble':
        this.sick.set(fault.process, 'the monotonic clock of a client jumped');
        return;
      case 'suspend':
        this.suspended.add(fault.process);
        this.noteClocks(fault.process);
        return;
      case 'wallJump':
        if (fault.by < 0) this.setBack.add(fault.process);
        this.noteClocks(fault.process);
        return;
      // These faults cost an answer, and no guarantee depends on an answer.
      case 'unmark':
      case 'scriptFlush':
      case 'oom':
      case 'readonly':
      case 'hang':
      case 'partition':
      case 'cut':
      case 'slow':
      case 'late':
      case 'orphan':
      case 'halfOpen':
      case 'pause':
      case 'die':
      case 'leave':
    }
  }

  private noteLoss(isGuarded: boolean): void {
    if (!isGuarded) this.broken.add('a master lost data, and there is no restart guard');
  }

  private noteClocks(process: number): void {
    if (!this.suspended.has(process) || !this.setBack.has(process)) return;
    this.sick.set(process, 'a machine was suspended, and its wall clock set back');
  }
}
