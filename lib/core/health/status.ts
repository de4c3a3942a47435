import { quorumOf } from '../acquire/quorum-call.js';
import type { ShardStatus } from '../master.interface.js';
import type { CircuitBreakerMaster } from './circuit-breaker-master.js';
import type { LockObserver } from '../observer.js';
import type { Clock, Timer } from '../clock.js';

/**
 * The state of one master.
 *
 * - `voting`: its votes count
 * - `quarantined`: it may have lost locks, or its clock jumped, so its votes do not count for a while
 * - `silent`: it is connected but does not answer
 * - `down`: there is no connection
 * - `refused`: it cannot vote until it or its settings are changed: it is a replica, it refuses the password or does not
 *   speak TLS, or it refused what a lock needs, such as every write, when it was asked last
 */
export type MasterState = 'voting' | 'quarantined' | 'silent' | 'down' | 'refused';

/** The status of one master. */
export interface MasterStatus {
  /** Name of the master, without credentials. */
  readonly master: string;
  /** Whether it votes, and if not, what keeps it from that. */
  readonly state: MasterState;
  /** Why it does not vote. Of one that votes: what it refuses all the same, such as extensions, and the missing permission. */
  readonly reason?: string;
  /** What visibly contradicts the declaration that it is `durable`. */
  readonly risk?: string;
  /** Milliseconds until its quarantine ends at the latest. */
  readonly remaining?: number;
  /** Version of the server, if it reports one. */
  readonly version?: string;
  /** Time in milliseconds until it answered, if it was probed. */
  readonly latency?: number;
  /**
   * The primaries of a cluster; absent for a single server. Each votes for the locks of its partitions, so `state` is
   * `voting` while any of them does.
   */
  readonly shards?: readonly ShardStatus[];
}

/** The status of all masters. */
export interface RedlockStatus {
  /** Name of this process: the option `instance`. */
  readonly instance: string;
  /** Number of masters that must vote. */
  readonly quorum: number;
  /** Whether that many masters can vote now. */
  readonly canVote: boolean;
  /** The status of each master, in the order in which the masters were configured. */
  readonly masters: readonly MasterStatus[];
}

export function statusOf(instance: string, masters: readonly CircuitBreakerMaster[]): RedlockStatus {
  return summarize(instance, masters.map(statusOfMaster));
}

export function votingIn({ masters }: RedlockStatus): number {
  return masters.filter(({ state }) => state === 'voting').length;
}

// Milliseconds, at the latest, if only quarantines have to end. `undefined` if masters have to be repaired first.
export function quorumWithin({ masters, quorum }: RedlockStatus): number | undefined {
  const waits = masters.flatMap(({ state, remaining }) =>
    state === 'voting' ? [0] : remaining === undefined ? [] : [remaining],
  );
  return waits.sort((a, b) => a - b)[quorum - 1];
}

export function summarize(instance: string, masters: readonly MasterStatus[]): RedlockStatus {
  const quorum = quorumOf(masters.length);
  const voting = masters.filter(({ state }) => state === 'voting').length;
  return { instance, quorum, canVote: voting >= quorum, masters };
}

function statusOfMaster(watched: CircuitBreakerMaster): MasterStatus {
  const { version, fault, risk, quarantine } = watched.identity();
  const shards = watched.shards();
  const known = {
    master: watched.name,
    ...(version !== undefined && { version }),
    ...(risk !== undefined && { risk }),
    ...(shards && { shards }),
  };
  const problem = watched.problem();
  if (fault !== undefined) return { ...known, state: 'refused', reason: fault };
  if (problem) return { ...known, state: problem.isPermanent ? 'refused' : 'down', reason: problem.reason };
  if (watched.isOpen) return { ...known, state: 'silent', reason: 'it leaves requests unanswered' };
  const refusal = watched.refusalReason;
  if (refusal !== undefined) return { ...known, state: 'refused', reason: refusal };
  if (quarantine) return { ...known, state: 'quarantined', ...quarantine };
  const restriction = watched.restrictionReason;
  return { ...known, state: 'voting', ...(restriction !== undefined && { reason: restriction }) };
}

type Change =
  | ('masterLost' | 'masterFound' | 'masterSilent' | 'masterAnswersAgain')
  | ('masterQuarantined' | 'masterRefused' | 'masterVotesAgain');

// Derives from the events of single masters when no lock can be taken any more, and when locks can be taken.
export class QuorumWatch implements Required<Pick<LockObserver, Change>> {
  // At the last check; `undefined` before the first status.
  private could: boolean | undefined;

  // `status` must be there before the first event.
  constructor(
    private readonly status: () => RedlockStatus,
    private readonly observer: LockObserver,
  ) {}

  get hasBegun(): boolean {
    return this.could !== undefined;
  }

  // Nothing counts as a change before: masters have to connect first. Idempotent.
  begin(): void {
    if (this.hasBegun) return;
    const status = this.status();
    this.could = status.canVote;
    this.observer.firstStatus?.(status);
  }

  readonly check = (): void => {
    if (this.could === undefined) return;
    const status = this.status();
    const { canVote, masters } = status;
    if (this.could === canVote) return;
    this.could = canVote;
    const voting = votingIn(status);
    if (canVote) this.observer.quorumRestored?.(voting, masters.length, status);
    else this.observer.quorumLost?.(voting, masters.length, status);
  };

  readonly masterLost = this.check;
  readonly masterFound = this.check;
  readonly masterSilent = this.check;
  readonly masterAnswersAgain = this.check;
  readonly masterQuarantined = this.check;
  readonly masterRefused = this.check;
  readonly masterVotesAgain = this.check;
}

// In milliseconds. A master that hangs is silent after its third unanswered request.
const CHECK_INTERVAL = 5_000;

// So that an application that takes no lock also notices a master that hangs or refuses writes, and one that works
// again. The connection to a master that hangs stays open.
export class IdleCheck {
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ask: () => void,
  ) {}

  begin(): void {
    this.ask();
    this.timer = this.clock.schedule(CHECK_INTERVAL, () => this.begin()).unref();
  }

  end(): void {
    this.timer?.cancel();
  }
}
