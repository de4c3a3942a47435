import type { RedlockOptions } from 'nestjs-redlock';

/** Something that only one instance may do at a time. */
export interface Job {
  /** What is locked for it. */
  readonly resource: string;
  /** How long it takes at least, and at most, in milliseconds. */
  readonly takes: readonly [shortest: number, longest: number];
}

/** How the show is set up. */
export interface Config {
  /** Port of the page; `0` takes a free one. */
  readonly port: number;
  /** Names of the instances, each of them a process with every job. */
  readonly instances: readonly string[];
  readonly jobs: readonly Job[];
  readonly locks: RedlockOptions;
}

/** Number of masters: one may fail, two may not. */
export const MASTERS = 3;

/** Short jobs for hand-offs to look at, and long ones that are extended again and again, and lost without a quorum. */
const JOBS: readonly Job[] = [
  { resource: 'invoices', takes: [1_500, 3_500] },
  { resource: 'search-index', takes: [4_000, 8_000] },
  { resource: 'nightly-report', takes: [12_000, 18_000] },
];

const LOCKS: RedlockOptions = {
  ttl: '3s',
  // With two masters restarted at once, neither votes for that long: time enough to see it.
  maxTtl: '8s',
  // Several processes start together here, and a page is drawn: a master is not silent because the machine is busy.
  masterTimeout: '200ms',
};

/** Reads `PORT`. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return { port: Number(env.PORT ?? 3000), instances: ['A', 'B', 'C'], jobs: JOBS, locks: LOCKS };
}
