import type { Config } from '../config.js';

/** The setup that an instance receives at its start. */
export interface Setup extends Pick<Config, 'locks' | 'jobs'> {
  /** URLs. */
  readonly masters: readonly string[];
}
