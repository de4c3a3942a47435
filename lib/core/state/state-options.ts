import { type Duration, parseDuration } from '../settings/duration.js';
import { RedlockConfigError } from '../errors.js';
import { checkOptionNames } from '../settings/option-names.js';
import { DAY, DEFAULT_STATE_LIFE } from './state-answers.js';

/** Options of `lock.state.get`. */
export interface StateReadOptions {
  /**
   * What happens if too many masters have lost their data since the value was set. `'throw'`: the call fails with a
   * `StateUncertainError`. `'newest'`: it gives the newest value that is left, which may be older than the last one, if
   * all masters answer.
   * @default 'throw'
   */
  onUncertain?: 'throw' | 'newest';
}

/** Options of `lock.state.set`. */
export interface StateWriteOptions extends StateReadOptions {
  /**
   * How long the value is kept if it is neither read nor set again, in milliseconds or as a string such as `'48h'`; at
   * least two days. It counts as gone a day earlier, because the masters do not delete it at the same moment. A later `set` can
   * make it longer, and not shorter.
   * @default 30 days
   */
  expireAfter?: Duration;
}

const NAMES = ['onUncertain', 'expireAfter'] as const satisfies (keyof StateWriteOptions)[];
const SHORTEST_LIFE = 2 * DAY;
const LONGEST_LIFE = 10_000 * DAY;

/** @throws {RedlockConfigError} for the first invalid option */
export function resolveStateOptions(options: StateWriteOptions = {}): {
  readonly onUncertain: 'throw' | 'newest';
  /** Milliseconds. */
  readonly life: number;
} {
  checkOptionNames('options', options, NAMES);
  const { onUncertain = 'throw', expireAfter = DEFAULT_STATE_LIFE } = options;
  if (!['throw', 'newest'].includes(onUncertain)) {
    throw new RedlockConfigError('onUncertain', onUncertain, `must be 'throw' or 'newest'`);
  }
  return { onUncertain, life: parseDuration('expireAfter', expireAfter, SHORTEST_LIFE, LONGEST_LIFE) };
}
