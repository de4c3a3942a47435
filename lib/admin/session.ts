import { formatValue } from '../settings/display.js';
import { type MasterReport, QuorumUnavailableError } from '../redlock/errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { inTime } from '../operate/inspector.js';
import type { MasterReply } from '../masters/master.interface.js';
import { LockManager } from '../locks/lock-manager.js';
import { resolveSettings, type Settings } from '../settings/settings.js';
import { languageOf } from '../redis/connection-problem.js';
import { type NamedClient, redisClient, redisMasters, refuseTwins, type ServerMaster } from '../redis/master-source.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { isListOfAddresses, redactAddress } from '../redis/urls.js';
import { defaultInstance, SystemRandom } from '../runtime/system.js';
import { SystemClock } from '../runtime/system-clock.js';

interface AdminOptions {
  // Addresses of masters, each alone, with credentials.
  readonly sources: readonly string[];
  readonly keyPrefix?: string | undefined;
  // For one answer, in milliseconds.
  readonly timeout: number;
}

export interface AdminContext extends Pick<AdminOptions, 'sources' | 'timeout'> {
  readonly endpoints: readonly NamedClient[];
  readonly settings: Settings;
}

export function adminContext({ sources, keyPrefix, timeout }: AdminOptions): AdminContext {
  const several = sources.find(isListOfAddresses);
  if (several !== undefined) {
    const message = `${formatValue(redactAddress(several))} is several addresses: give each as --master redis://host:6379`;
    throw new RedlockConfigError('masters', several, 'must be one address', message);
  }
  const endpoints = sources.map((source, index) => redisClient(`masters[${index}]`, source));
  refuseTwins('masters', endpoints);
  // Without the restart guard, which would write a marker on each master.
  const settings = resolveSettings({
    ...{ ttl: Math.max(10_000, 4 * timeout), masterTimeout: timeout, restartGuard: false },
    ...{ instance: `cli:${defaultInstance()}`, ...(keyPrefix !== undefined && { keyPrefix }) },
  });
  return { sources, endpoints, settings, timeout };
}

const CLOCK = new SystemClock();

export interface Session {
  readonly redlock: LockManager;
  // Masters that an application would refuse do not count here, either.
  readonly masters: readonly ServerMaster[];
  readonly absent: readonly MasterReport[];
  // Bounds the time for one answer.
  readonly limit: <T>(answer: Promise<T>) => Promise<T | MasterReply>;
}

export async function inSession<T>(
  { sources, settings, timeout }: AdminContext,
  action: (session: Session) => Promise<T>,
): Promise<T> {
  const dependencies = { clock: CLOCK, random: new SystemRandom(), observer: {}, encoder: new RequestEncoder() };
  const masters = redisMasters('masters', sources, { ...dependencies, settings, languageOf });
  const redlock = new LockManager(masters, settings, dependencies);
  try {
    // Each answer reports what is wrong.
    await redlock.masters.connect(timeout).catch((error: unknown) => {
      if (!(error instanceof QuorumUnavailableError || error instanceof RedlockConfigError)) throw error;
    });
    const { masters: states } = redlock.masters.status();
    return await action({
      redlock,
      masters: masters.filter((_, index) => states[index]?.state === 'voting'),
      absent: states.flatMap(({ master, state, reason = 'not connected' }): MasterReport[] => {
        const isPermanent = state === 'refused';
        const answer = { kind: 'unreachable', reason, sent: false, ...(isPermanent && { isPermanent }) } as const;
        return state === 'voting' ? [] : [{ master, answer }];
      }),
      limit: (answer) => inTime(answer, { clock: CLOCK, timeout }),
    });
  } finally {
    await redlock.close();
  }
}
