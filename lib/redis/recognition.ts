import type { Clock, Instant, Timer } from '../core/clock.js';
import type { MasterIdentity, Quarantine } from '../core/master.interface.js';
import type { Observer } from '../core/observer.js';
import type { Random } from '../core/random.js';
import { driftOf, ownName, type Settings } from '../core/settings.js';
import { ClockGuard } from './clock-guard.js';
import { type Evaluate, handshake } from './handshake.js';
import type { Report } from './identity.js';
import { Incarnation } from './incarnation.js';
import { boundScripts, type Scripts } from './scripts.js';

/** What a master on a server needs to know of its surroundings. */
export interface RedisMasterContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: Observer;
}

/** Who a server is, and since when it has been that: what decides whether its votes count. */
export class Recognition {
  /** Name of the marker. */
  readonly marker: string;
  private readonly incarnation: Incarnation | undefined;
  private readonly clockGuard = new ClockGuard();
  private report: Report | undefined;
  private fault: string | undefined;
  private bound: Scripts = boundScripts('', false);
  private running: Promise<void> | undefined;
  private end: Timer | undefined;
  private warned = false;

  constructor(
    private readonly name: string,
    private readonly context: RedisMasterContext,
  ) {
    const { clock, settings, random } = context;
    this.marker = ownName(settings, 'incarnation');
    if (!settings.restartGuard) return;
    const { maxTtl } = settings;
    this.incarnation = new Incarnation(clock, { maxTtl, drift: driftOf(settings, maxTtl) }, () => random.token());
  }

  /** The scripts as this run of the server knows them. */
  get scripts(): Scripts {
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
   * @param distrust why the server must wait in any case, if it must
   * @throws what the connection throws
   */
  run(evaluate: Evaluate, distrust?: string): Promise<void> {
    this.running ??= this.shake(evaluate, distrust).finally(() => (this.running = undefined));
    return this.running;
  }

  /**
   * Looks at the clock of the server, which came with a grant.
   *
   * @param time wall clock of the server in milliseconds
   * @param ttl what was asked for, in milliseconds
   * @returns why the server is not to be trusted, if it is not
   */
  lookAtClock(sent: Instant, time: number, ttl: number): string | undefined {
    if (!this.incarnation) return undefined;
    const jump = this.clockGuard.jump(sent, this.context.clock.read(), time, driftOf(this.context.settings, ttl));
    return jump > 0 ? `its clock jumped forward by ${Math.round(jump)} ms` : undefined;
  }

  close(): void {
    this.end?.cancel();
  }

  private async shake(evaluate: Evaluate, distrust: string | undefined): Promise<void> {
    const { clock } = this.context;
    const { report, fault } = await handshake(evaluate, this.marker, this.incarnation, clock, distrust);
    this.report = report;
    this.fault = fault;
    if (fault !== undefined) return;
    this.bound = boundScripts(report.run ?? '', this.incarnation !== undefined);
    this.tell(report);
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
