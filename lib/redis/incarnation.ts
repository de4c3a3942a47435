import type { Clock, Instant } from '../core/clock.js';
import type { Quarantine } from '../core/master.interface.js';
import type { Marker, Report } from './identity.js';

/** `uptime_in_seconds` is rounded. */
const UPTIME_RESOLUTION = 1_000;

/** What a client makes of a server's report. */
export interface Assessment {
  /** The marker as it should be. */
  readonly marker: Marker;
  /** Whether the server has another one. */
  readonly isNew: boolean;
  /** Why the server has to wait before its votes count, if that begins now. */
  readonly reason: string;
  /** The longest time for which it may have to wait, in milliseconds. */
  readonly longest: number;
  /** The distrust that this answers to, if any. */
  readonly distrust: string | undefined;
}

/** How much of the past a master must have seen. */
export interface GuardSettings {
  /** Largest ttl that this client uses, in milliseconds. */
  readonly maxTtl: number;
  /** How far clocks may run apart during that, in milliseconds. */
  readonly drift: number;
}

interface Wait {
  /** Milliseconds. */
  readonly wait: number;
  readonly reason: string;
}

/** Begins the nonce of a marker whose writer let the master wait for the whole time. */
const WHOLE = 'whole:';

/**
 * Whether a master still knows what it has acknowledged.
 *
 * A master that comes back without its keys could grant a lock that somebody else still holds. Whoever meets it first
 * therefore lets it wait until every older lock has expired. The marker carries that to the other clients, and shows
 * that the data is still the data that was seen before.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ on delayed restarts
 */
export class Incarnation {
  private known: Marker | undefined;
  private distrust: string | undefined;
  private quarantine: { readonly reason: string; readonly since: Instant; readonly length: number } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly settings: GuardSettings,
    private readonly newNonce: () => string,
  ) {}

  /** Tells the marker that was accepted last. */
  get nonce(): string {
    return this.known?.nonce ?? '';
  }

  /** Why the votes of the master do not count at the moment; `undefined` when they do. */
  get quarantined(): Quarantine | undefined {
    if (!this.quarantine) return undefined;
    const { reason, since, length } = this.quarantine;
    const remaining = length - this.passedSince(since);
    return remaining > 0 ? { reason, remaining } : undefined;
  }

  /** Why the master must wait in any case, from now on and whatever it says about itself. */
  get distrusted(): string | undefined {
    return this.distrust;
  }

  /** Lets the master wait at once, and again from its next report on, by which the others learn of it. */
  suspect(reason: string): void {
    this.distrust = reason;
    const { maxTtl, drift } = this.settings;
    this.begin(reason, this.clock.read(), Math.max(maxTtl, this.known?.maxTtl ?? 0) + drift);
  }

  assess(report: Report): Assessment {
    const { marker, time } = report;
    const { distrust, known } = this;
    // Who does not tell its run is taken at the marker's word.
    const run = report.run ?? marker?.run ?? '';
    const maxTtl = Math.max(this.settings.maxTtl, marker?.maxTtl ?? 0, known?.maxTtl ?? 0);
    const full = maxTtl + this.settings.drift + UPTIME_RESOLUTION;
    const begin = ({ wait, reason }: Wait): Assessment => {
      const from = Math.max(marker?.run === run ? marker.from : 0, Math.ceil(time + wait));
      const nonce = (wait >= full ? WHOLE : '') + this.newNonce();
      return { marker: { run, nonce, from, maxTtl }, isNew: true, reason, longest: full, distrust };
    };

    if (distrust !== undefined) return begin({ wait: full, reason: distrust });
    const wait = this.waitOf(report, full);
    if (marker?.run !== run) return begin(wait);
    const isShort = marker.maxTtl < maxTtl;
    // Whoever wrote a marker in place of the one we knew may not have known what was lost.
    if (this.isReplaced(marker) && (isShort || !marker.nonce.startsWith(WHOLE))) {
      return begin({ wait: full, reason: 'its data was replaced' });
    }
    const reason = 'it came back a short while ago';
    if (!isShort) return { marker, isNew: false, reason, longest: full, distrust };
    // Nor did a client with shorter locks wait for ours. What it did not count is the difference.
    const more = Math.min(wait.wait, marker.from - time + full - marker.maxTtl);
    if (more > Math.max(0, marker.from - time)) return begin({ wait: more, reason: wait.reason });
    // By a new name, so that the others learn of it; that begins with the old one, so that they see why.
    const nonce = `${marker.nonce}+${maxTtl}`;
    return { marker: { ...marker, nonce, maxTtl }, isNew: true, reason, longest: full, distrust };
  }

  /** Relies on the marker, which the server has now. `asked` is the moment before its report was asked for. */
  accept({ marker, reason, longest, distrust }: Assessment, { time }: Report, asked: Instant): void {
    const isKnown = this.known !== undefined && !this.isReplaced(marker) && this.known.run === marker.run;
    this.known = marker;
    if (this.distrust === distrust) this.distrust = undefined;
    // What was waited for once is over, even if the server's clock is set back.
    if (isKnown) return;
    this.begin(reason, asked, Math.min(marker.from - time, longest) + this.passedSince(asked));
  }

  private begin(reason: string, since: Instant, length: number): void {
    const left = length - this.passedSince(since);
    if (left <= 0) return;
    const running = this.quarantined;
    // What this client counts on its own clock does not end earlier because a server's clock says so.
    if (running && running.remaining > left) return;
    this.quarantine = { reason: running?.reason ?? reason, since, length };
  }

  /**
   * On the monotonic clock alone: the locks of others do not end earlier because somebody sets this machine's wall clock
   * forward. That it stands still while the machine is suspended lets the master wait longer.
   */
  private passedSince({ monotonic }: Instant): number {
    return Math.max(0, this.clock.read().monotonic - monotonic);
  }

  private isReplaced(marker: Marker): boolean {
    const { known } = this;
    if (known?.run !== marker.run) return false;
    return marker.nonce !== known.nonce && !marker.nonce.startsWith(`${known.nonce}+`);
  }

  /** How long a server has to wait that has come back without its data, for all that it tells. */
  private waitOf({ run, uptime, wasPromoted, marker }: Report, full: number): Wait {
    if (run === undefined) return { wait: full, reason: 'it does not tell since when it has run' };
    if (!marker && this.known?.run === run) return { wait: full, reason: 'it lost its data' };
    if (wasPromoted) return { wait: full, reason: 'it was promoted from a replica' };
    return { wait: Math.max(0, full - uptime), reason: 'it was started a short while ago' };
  }
}
