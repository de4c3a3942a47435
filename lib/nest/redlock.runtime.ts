import type { LoggerService } from '@nestjs/common';
import { QuorumUnavailableError } from '../core/errors.js';
import { IdleCheck } from '../core/health/idle-check.js';
import { QuorumWatch } from '../core/health/quorum-watch.js';
import type { RedlockStatus } from '../core/health/status.js';
import type { Master } from '../core/master.interface.js';
import type { LockObserver } from '../core/observer.js';
import { ObserverHub } from '../core/observer-hub.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { Redlock } from '../core/redlock.js';
import { type Settings, warningOfTtl } from '../core/settings/settings.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { RestartGuard } from '../redis/guard/restart-guard.js';
import { languageOf } from '../redis/port-language.js';
import { isServerMaster } from '../redis/master-source.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { SystemRandom } from '../runtime/system-random.js';
import { adviceFor, adviceOnBoot, measureOnce, warnOfRoundTrips } from './boot-advice.js';
import { LockService } from './lock.service.js';
import { logTo } from './log-observer.js';
import { createMasters } from './masters-option.js';
import { resolveModule } from './module-settings.js';
import { observersOf, reportTo, started } from './observers-option.js';
import { OpenMaster } from './open-master.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';

/** One registered lock service and the algorithm that it runs on. */
export class RedlockRuntime {
  constructor(
    readonly service: LockService,
    private readonly redlock: Redlock,
    private readonly drainTimeout: number,
    private readonly observer: LockObserver = {},
    private readonly idleCheck?: IdleCheck,
  ) {}

  /** Refuses new locks and ends waiting. */
  stop(): void {
    this.redlock.stop();
  }

  /** Waits for the held locks, for at most `drainTimeout`, and closes the connections. */
  async close(): Promise<void> {
    this.redlock.stop();
    this.idleCheck?.end();
    await this.redlock.drain(this.drainTimeout);
    await this.redlock.close();
    this.service.close();
    this.observer.stopped?.();
  }
}

/**
 * Checks all options, and connects to the masters.
 *
 * @param name the name of the service for observers
 * @throws {RedlockConfigError} for the first invalid option
 * @throws {QuorumUnavailableError} if a majority of the masters cannot be reached
 */
export async function createRedlockRuntime(
  options: RedlockModuleOptions,
  logger: LoggerService,
  name = 'default',
): Promise<RedlockRuntime> {
  const { settings, connectTimeout, drainTimeout, lazy, enabled, clock } = resolveModule(options);
  const warn = (message: string): void => void logger.warn(message);
  const warning = warningOfTtl(settings.ttl);
  if (warning !== undefined) warn(warning);
  const random = new SystemRandom();
  const given = observersOf(options.observers);
  const hub = new ObserverHub(reportTo(logger)).add(logTo(logger, clock));
  const { observer } = hub;
  if (!enabled) {
    logger.warn('locking is disabled by `enabled: false`: everything runs without locks');
    const master = new OpenMaster(clock);
    const open = (): Redlock => new Redlock([master], settings, { clock, random, observer });
    return new RedlockRuntime(new LockService(open, settings, warn, hub, false), open(), 0);
  }
  const status = (): RedlockStatus => redlock.status();
  hub.add(...started(given, { name, status }, logger));
  const quorum = new QuorumWatch(status, observer);
  hub.add(quorum);
  const dependencies = { clock, random, observer };
  const guard = settings.restartGuard
    ? new RestartGuard({
        ...{ ...dependencies, settings, instance: settings.instance },
        clockLags: (milliseconds) => redlock.noteStandstill(milliseconds),
      })
    : undefined;
  let masters: Master[];
  try {
    const context = { ...dependencies, settings, guard, languageOf, encoder: new RequestEncoder() };
    masters = createMasters(options.masters, context);
  } catch (error) {
    observer.stopped?.();
    throw error;
  }
  const witness = guard?.isNeeded ? guard : undefined;
  const servers = masters.filter(isServerMaster);
  const advice = adviceFor(servers, settings);
  const redlock: Redlock = new Redlock(masters, settings, { ...dependencies, witness, advice });
  const service = new LockService(() => redlock, settings, warn, hub);
  // A master in memory hangs only if a test lets it.
  const mayHang = masters.some((master) => !(master instanceof MemoryMaster));
  const idleCheck = mayHang ? new IdleCheck(clock, () => redlock.checkMasters()) : undefined;
  const runtime = new RedlockRuntime(service, redlock, drainTimeout, observer, idleCheck);
  announce(logger, masters, settings);
  redlock.onReady(quorum.check);
  const begin = (): Promise<void> => watch({ quorum, redlock, guard, idleCheck });
  const measure = (): Promise<void> => warnOfRoundTrips(servers, { clock, settings, all: masters.length, warn });
  if (lazy) {
    const deadline = clock.schedule(connectTimeout, () => void begin()).unref();
    void redlock.open().then(() => {
      deadline.cancel();
      measureOnce(redlock, servers, measure);
      return begin();
    });
    return runtime;
  }
  try {
    await redlock.connect(connectTimeout);
    void begin();
  } catch (error) {
    await redlock.close();
    observer.stopped?.();
    if (error instanceof QuorumUnavailableError) logger.error(adviceOnBoot(error, masters.length));
    throw error;
  }
  void measure();
  return runtime;
}

function announce(logger: LoggerService, masters: readonly Master[], settings: Settings): void {
  const names = masters.map(({ name }) => name).join(', ');
  logger.log(`locks need ${quorumOf(masters.length)} of ${masters.length} masters: ${names}; ttl ${settings.ttl} ms`);
  if (masters.length % 2 === 0) {
    const enough = masters.length - 1;
    logger.warn(`masters: ${masters.length} is an even number and survives no more failures than ${enough} would`);
  }
}

interface Watched {
  readonly quorum: QuorumWatch;
  readonly redlock: Redlock;
  readonly guard: RestartGuard | undefined;
  readonly idleCheck: IdleCheck | undefined;
}

/** Begins to watch the quorum when the guard knows what the masters that have connected are. Closing ends that, too. */
async function watch({ quorum, redlock, guard, idleCheck }: Watched): Promise<void> {
  await guard?.decided();
  if (redlock.isStopped || quorum.hasBegun) return;
  quorum.begin();
  idleCheck?.begin();
}
