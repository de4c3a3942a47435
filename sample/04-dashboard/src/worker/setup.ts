import type { Config } from '../config.js';

/** What an instance is told when it is started. */
export interface Setup extends Pick<Config, 'locks' | 'jobs'> {
  /** URLs. */
  readonly masters: readonly string[];
}
