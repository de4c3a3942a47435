import type { Clock, Instant, Timer } from '../core/clock.js';
import type { MasterIdentity, Quarantine } from '../core/master.interface.js';
import type { Observer } from '../core/observer.js';
import type { Random } from '../core/random.js';
import { driftOf, ownName, type Settings } from '../core/settings.js';
import { countersName } from '../core/fencing.js';
import { ClockGuard } from './clock-guard.js';
import { type Evaluate, handshake } from './handshake.js';
import type { Report } from './identity.js';
import { Incarnation } from './incarnation.js';
import type { RequestEncoder } from './request-encoding.js';
import { boundScript, type Script } from './scripts.js';

/** For a server that has not told yet who it is. */
const UNBOUND = boundScript('');

/** What a master on a server needs to know of its surroundings. */
export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: Observer;
  /** Shared by all masters that are asked the same. */
  readonly encoder: RequestEncoder;
  /** Whether there is no other master. */
  readonly isAlone?: boolean;
}

/** Who a server is, and since when it has been that: what decides whether its votes count. */
export class Recognition {
  /** Name of the hash of fencing counters. */
  readonly counters: string;
  private readonly marker: string;
  private readonly incarnation: Incarnation | undefined;
  private readonly clockGuard: ClockGuard;
  private report: Report | undefined;
  private fault: string | undefined;
  private bound: Script = UNBOUND;
  private running: Promise<void> | undefined;
  private end: Timer | undefined;
  private warned = false;

  constructor(
    private readonly name: string,
    private readonly context: RedisMasterContext,
  ) {
    const { clock, settings, random } = context;
    this.marker = ownName(settings, 'incarnation');
    this.counters = countersName(settings);
    const { maxTtl } = settings;
    this.clockGuard = new ClockGuard(maxTtl);
    if (!settings.restartGuard) return;
    this.incarnation = new Incarnation(clock, { maxTtl, drift: driftOf(settings, maxTtl) }, () => random.token());
  }

  /** The script as this run of the server knows it. */
  get script(): Script {
    return this.bound;
  }

  /** What the marker must be for a grant to count; `undefined` if nobody looks at it. */
  get mark(): { readonly marker: string; readonly nonce: string } | undefined {
    return this.incarnation && { marker: this.marker, nonce: this.incarnation.nonce };
  }

  get quarantine(): Quarantine | undefined {
    return this.incarnation?.quarantined;
  }

  get identity(): MasterIdentity {
    const { run, version } = this.report ?? {};
    return { run, version, fault: this.fault, quarantine: this.quarantine };
  }

  /**
   * Asks the server who it is, and takes the consequences. One handshake at a time.
   *
   * @throws what the connection throws
   */
  run(evaluate: Evaluate): Promise<void> {
    this.running ??= this.shake(evaluate).finally(() => (this.running = undefined));
    return this.running;
  }

  /**
   * Looks at the clock of the server, which came with an answer. If it jumped, the server waits from now on; it has to
   * be asked who it is, so that the others learn of it.
   *
   * @param time wall clock of the server in milliseconds
   * @param ttl what was asked for, in milliseconds
   * @returns whether it jumped
   */
  lookAtClock(sent: Instant, time: number, ttl: number): boolean {
    if (!this.incarnation) return false;
    const { clock, settings } = this.context;
    // What expired early may have been asked for with another ttl than this.
    const allowance = driftOf(settings, Math.min(ttl, settings.ttl));
    const jump = this.clockGuard.jump(sent, clock.read(), time, allowance);
    if (jump > 0) this.incarnation.suspect(`its clock jumped forward by ${Math.round(jump)} ms`);
    return jump > 0;
  }

  close(): void {
    this.end?.cancel();
  }

  private async shake(evaluate: Evaluate): Promise<void> {
    const { clock, settings } = this.context;
    do {
      const { report, asked, fault } = await handshake(evaluate, this.marker, this.incarnation, clock);
      this.report = report;
      const before = this.fault;
      this.fault = fault;
      if (fault !== undefined && fault !== before) this.context.observer.masterRefused?.(this.name, fault);
      if (fault !== undefined) return;
      this.bound = boundScript(report.run ?? '');
      this.lookAtClock(asked, report.time, settings.ttl);
      this.tell(report);
      if (before !== undefined && !this.quarantine) this.context.observer.masterVotesAgain?.(this.name);
      // Meanwhile there may have been a reason to distrust it, which the others must learn of.
    } while (this.incarnation?.distrusted !== undefined);
  }

  private tell({ eviction }: Report): void {
    const { observer, clock } = this.context;
    if (eviction !== undefined && !this.warned) {
      this.warned = true;
      observer.masterAtRisk?.(
        this.name,
        `maxmemory-policy ${eviction} drops locks when memory is full: use noeviction`,
      );
    }
    const { quarantine } = this;
    if (!quarantine || this.end) return;
    observer.masterQuarantined?.(this.name, quarantine.reason, quarantine.remaining);
    const lookAgain = (): void => {
      const remaining = this.quarantine?.remaining;
      if (remaining !== undefined) {
        this.end = clock.schedule(Math.ceil(remaining), lookAgain).unref();
        return;
      }
      this.end = undefined;
      observer.masterVotesAgain?.(this.name);
    };
    this.end = clock.schedule(Math.ceil(quarantine.remaining), lookAgain).unref();
  }
}
