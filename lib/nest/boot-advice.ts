import type { Clock } from '../core/clock.js';
import { type QuorumUnavailableError } from '../core/errors.js';
import { isHopeless } from '../core/health/connect.js';
import { measureRoundTrips, warningOfRoundTrips } from '../core/health/round-trip.js';
import { Keyspace } from '../core/keyspace.js';
import type { Redlock } from '../core/redlock.js';
import type { Settings } from '../core/settings/settings.js';
import { doctorCommand } from '../redis/doctor-command.js';
import type { ServerMaster } from '../redis/master-source.js';

/** The end of errors about masters that cannot vote; `undefined` without servers to examine. */
export function adviceFor(servers: readonly ServerMaster[], settings: Settings): string | undefined {
  if (servers.length === 0) return undefined;
  const urls = servers.map(({ placeholderUrl }) => placeholderUrl);
  return `To examine them: ${doctorCommand(urls, settings)}`;
}

/** The line of the log before the boot fails. */
export function adviceOnBoot({ answers }: QuorumUnavailableError, masters: number): string {
  const start = 'cannot start without a majority of the masters';
  return isHopeless(answers, masters)
    ? `${start}: waiting does not help, the servers or their settings have to be corrected`
    : `${start}; \`lazyConnect: true\` starts without waiting for them`;
}

interface Measuring {
  readonly clock: Clock;
  readonly settings: Settings;
  /** Number of all masters. */
  readonly all: number;
  readonly warn: (message: string) => void;
}

/** Measures the servers, and warns if `masterTimeout` is shorter than a round trip. Never rejects. */
export async function warnOfRoundTrips(
  servers: readonly ServerMaster[],
  { clock, settings: { masterTimeout, keyPrefix }, all, warn }: Measuring,
): Promise<void> {
  const key = new Keyspace(keyPrefix).probe;
  const trips = await measureRoundTrips(servers, { key, clock, enough: masterTimeout });
  const warning = warningOfRoundTrips(trips, masterTimeout, all);
  if (warning !== undefined) warn(warning);
}

/** Measures once, as soon as a quorum of the servers is connected, which may be now. */
export function measureOnce(redlock: Redlock, servers: readonly ServerMaster[], measure: () => Promise<void>): void {
  let isDone = false;
  const check = (): void => {
    if (isDone || redlock.isStopped) return;
    const connected = servers.filter((server) => !server.problem()).length;
    if (connected < redlock.status().quorum) return;
    isDone = true;
    void measure();
  };
  redlock.onReady(check);
  check();
}
