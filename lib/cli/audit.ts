import { hostname, userInfo } from 'node:os';
import { showNames, duration } from '../core/display.js';
import { plain } from './terminal.js';

export interface TrustRecord {
  readonly at: string;
  readonly by: string;
  readonly master: string;
  readonly trusted: boolean;
  readonly reason: string;
  // In milliseconds; `null` if its wait had not begun.
  readonly left: number | null;
  // A process that held a lock had objected to an early end.
  readonly vetoed: boolean;
  readonly run: string;
}

export function operator(): string {
  const { SUDO_USER } = process.env;
  const name = userName();
  const who = SUDO_USER !== undefined && SUDO_USER !== name ? `${SUDO_USER} as ${name}` : name;
  return `${who}@${hostname()}`;
}

export function trustLine({ at, by, master, trusted, reason, left, vetoed, run }: TrustRecord): string {
  const verb = trusted ? 'trusted' : 'failed to trust';
  const wait = left === null ? 'its wait had not begun' : `${duration(left)} of its wait left`;
  const objection = vetoed ? ', against the veto of a holder' : '';
  return `audit: ${at} ${showNames([by])} ${verb} ${showNames([master])} (run ${run || 'unknown'}, ${plain(reason)}, ${wait}${objection})`;
}

// A container may run under a user id that has no name.
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
