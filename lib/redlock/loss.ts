import { LockLostError, type MasterReport } from './errors.js';
import type { QuorumCall } from './quorum.js';
import { TIMED_OUT } from './server.js';

interface Expiry {
  readonly resources: readonly string[];
  // For longer than `maxHold`.
  readonly isKeptTooLong: boolean;
  // The part of the elapsed time that the monotonic clock has missed, in milliseconds; 0 if the lock has ended without it.
  readonly lead: number;
  // Whether it is extended.
  readonly extend: boolean;
  readonly ttl: number;
  // To extensions that failed.
  readonly replies: readonly MasterReport[];
}

// Why a lock has ended whose time is over.
export function expiryOf({ resources, isKeptTooLong, lead, extend, ttl, replies }: Expiry): LockLostError {
  const step = lead > 0 ? inWords(lead) : undefined;
  if (isKeptTooLong) return new LockLostError(resources, 'max-hold', [], step);
  const explanation = replies.length > 0 ? undefined : whyNotExtended(extend, ttl);
  return new LockLostError(resources, 'expired', replies, step ?? explanation);
}

// For a lock that expired although no extension of it has failed.
function whyNotExtended(isExtended: boolean, ttl: number): string {
  return isExtended
    ? `this process was blocked or suspended, and did not extend it within its ttl of ${ttl} ms`
    : `it was not extended within its ttl of ${ttl} ms: release it in time, or pass \`extend: true\` or a longer ttl`;
}

// A part of the elapsed time that the monotonic clock has missed: no clock of this process can tell the two causes apart.
function inWords(lead: number): string {
  return `the wall clock was stepped forward, or the machine was suspended, by ${Number((lead / 1_000).toPrecision(2))} s`;
}

// What each master replied last to the extensions of one lock.
export class ExtensionReplies {
  private earlier: readonly MasterReport[] = [];
  private current: Pick<QuorumCall, 'report' | 'isOpen'> | undefined;

  begin(quorumCall: Pick<QuorumCall, 'report' | 'isOpen'>): void {
    this.earlier = this.last;
    this.current = quorumCall;
  }

  // A master that was not waited for has its reply to an earlier extension here, and so has one that refused it and has
  // not answered the one under way: the validity may end soon after that was sent.
  get last(): readonly MasterReport[] {
    if (!this.current) return this.earlier;
    const { report, isOpen } = this.current;
    return report.map(({ master, answer }, index) => {
      const earlier = this.earlier[index]?.answer;
      return { master, answer: answer ?? (isOpen && earlier?.kind !== 'refused' ? TIMED_OUT : earlier) };
    });
  }
}
