import { elapsedBetween, type Instant } from '../../core/clock.js';
import { ANNOUNCED_FOR } from '../scripts/operations.lua.js';

/** So many milliseconds after an announcement, a server still keeps the ttl for as long as a new lock lives. */
const KNOWN_FOR = ANNOUNCED_FOR - 500;

/**
 * The ttl that one server last confirmed. A grant with a larger ttl does not count: the quarantine of another master
 * could be too short for it.
 */
export class ConfirmedTtl {
  private last: { readonly ttl: number; readonly sent: Instant } | undefined;

  /** @param sent when the announcement of the ttl, in milliseconds, was sent */
  confirm(ttl: number, sent: Instant): void {
    if (ttl > 0) this.last = { ttl, sent };
  }

  /** Whether the server certainly knew of a ttl when it gave an answer that arrived at `received`. */
  covers(ttl: number, received: Instant): boolean {
    const { last } = this;
    // Protocol 8.9
    return last !== undefined && ttl <= last.ttl && elapsedBetween(last.sent, received) <= KNOWN_FOR;
  }

  /** Other data knows of no ttl. */
  forget(): void {
    this.last = undefined;
  }
}
