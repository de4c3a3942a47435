import { formatReports, hide, LockError, type MasterReport } from '../redlock/errors.js';
import type { LockHolder } from '../redlock/holder.js';
import { showNames } from '../redlock/names.js';

// A lock of this process that a call has waited for.
export interface OwnHolder {
  // `undefined` for permits and shared locks, which have several.
  readonly holder: LockHolder | undefined;
  // The decorated method that holds it; `undefined` for code of the application.
  readonly caller: string | undefined;
  // Milliseconds.
  readonly freeAfter: number;
}

/** Another holder kept the resource until the waiting budget ended. */
export class LockNotAcquiredError extends LockError {
  readonly code = 'LOCK_NOT_ACQUIRED';
  readonly statusCode = 423;
  readonly #own: LockHolder | undefined;

  constructor(
    resources: readonly string[],
    answers: readonly MasterReport[],
    /** The waiting budget in milliseconds. */
    readonly waited: number,
    /**
     * Milliseconds after which the resource could be free if its holder does not extend the lock; of permits, after which
     * one of them could be. `undefined` if too few masters reported it.
     */
    readonly retryAfter: number | undefined,
    /** The number of permits of which none was free; `undefined` for a lock. */
    readonly permits?: number,
    own?: { readonly holder: LockHolder | undefined; readonly caller: string | undefined },
  ) {
    const budget = waited > 0 ? ` within ${waited} ms` : '';
    // Without an answer, it waited in the queue of its process, which asks the masters for its first entry only.
    const isInLine = answers.length === 0 && waited > 0;
    const names = showNames(resources);
    const state =
      permits === undefined ? stateOf(names, answers, isInLine, own) : stateOfPermits(names, permits, isInLine);
    super(`${state}: not acquired${budget}${formatReports(answers)}`, resources, answers);
    if (permits === undefined) hide(this, 'permits');
    this.#own = own?.holder;
  }

  /**
   * The holder of the resource, as most masters answered, or in this process; `undefined` if they named no holder, and for
   * shared locks and permits, which have several.
   */
  get holder(): LockHolder | undefined {
    return this.permits === undefined ? (majorityHolder(this.answers) ?? this.#own) : undefined;
  }
}

function stateOf(names: string, answers: readonly MasterReport[], isInLine: boolean, own?: Partial<OwnHolder>): string {
  const { holder = majorityHolder(answers), caller } = own ?? {};
  const unnamed = isInLine ? 'held or awaited by another call in this process' : 'held by another holder';
  const where = caller === undefined ? 'this process' : `this process, ${caller}`;
  const state = holder ? `held by ${holder.instance} since ${holder.since.toISOString()}` : unnamed;
  return `${names} is ${state}${own?.holder ? ` (${where})` : ''}`;
}

// The masters answered for the permits that were tried, so the message names none of their holders.
function stateOfPermits(names: string, permits: number, isInLine: boolean): string {
  const all = permits === 1 ? 'the only permit' : `all ${permits} permits`;
  if (isInLine) return `${all} of ${names} ${permits === 1 ? 'is' : 'are'} held or awaited by calls in this process`;
  const none = permits === 1 ? 'the only permit' : `none of the ${permits} permits`;
  return `${none} of ${names} was ${permits === 1 ? 'not ' : ''}free`;
}

// More than half of the masters that reported on the resource must name the holder.
export function majorityHolder(answers: readonly MasterReport[]): LockHolder | undefined {
  const holders = answers.flatMap(({ answer }) => (answer?.kind === 'held' && answer.holder ? [answer.holder] : []));
  const isSame = (one: LockHolder, other: LockHolder): boolean =>
    one.instance === other.instance && one.since.getTime() === other.since.getTime();
  const count = (holder: LockHolder): number => holders.filter((other) => isSame(holder, other)).length;
  const reports = answers.filter(({ answer }) => answer?.kind === 'held' || answer?.kind === 'granted').length;
  return holders.find((holder) => 2 * count(holder) > reports);
}
