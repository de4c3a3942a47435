import type { Config } from '../src/config.js';

/**
 * The lock of one job changes hands constantly. The lock of the other is always held, and ends only if it is lost. A
 * master that was restarted is in quarantine for 5 s, long enough to be seen on a busy machine.
 */
export const CONFIG: Config = {
  port: 0,
  instances: ['A', 'B', 'C'],
  jobs: [
    { resource: 'short', takes: [200, 400] },
    { resource: 'endless', takes: [3_600_000, 3_600_000] },
  ],
  locks: { ttl: '3s', maxTtl: '5s', masterTimeout: '200ms' },
};
