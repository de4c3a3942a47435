import type { RedlockOptions } from 'nestjs-redlock';

/** Work that only one instance may do at a time. */
export interface Job {
  /** The resource that it locks. */
  readonly resource: string;
  /** Shortest and longest duration, in milliseconds. */
  readonly takes: readonly [shortest: number, longest: number];
}

/** Configuration of the demonstration. */
export interface Config {
  /** Port of the page; `0` takes a free one. */
  readonly port: number;
  /** Names of the instances. Each is a process with every job. */
  readonly instances: readonly string[];
  readonly jobs: readonly Job[];
  readonly locks: RedlockOptions;
}

/** Number of masters: one may fail, two may not. */
export const MASTERS = 3;

/** Short jobs show hand-offs. Long jobs show extensions, and losses without a quorum. */
const JOBS: readonly Job[] = [
  { resource: 'invoices', takes: [1_500, 3_500] },
  { resource: 'search-index', takes: [4_000, 8_000] },
  { resource: 'nightly-report', takes: [12_000, 18_000] },
];

const LOCKS: RedlockOptions = {
  // When two masters restart at once, neither votes for this long.
  ttl: '3s',
  // Several processes start together here, and a page is drawn. A busy machine must not make a master seem silent.
  masterTimeout: '200ms',
};

/** Reads `PORT`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return { port: Number(env.PORT ?? 3000), instances: ['A', 'B', 'C'], jobs: JOBS, locks: LOCKS };
}
