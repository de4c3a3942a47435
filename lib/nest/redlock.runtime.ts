import type { Clock } from '../core/clock.js';
import { QuorumUnavailableError } from '../core/errors.js';
import { isHopeless } from '../core/health/connect.js';
import { measureRoundTrips, warningOfRoundTrips } from '../core/health/round-trips.js';
import { counted } from '../core/display.js';
import { Keyspace } from '../core/keyspace.js';
import { Redlock } from '../core/redlock.js';
import { type Settings, warningOfTtl } from '../core/settings/settings.js';
import type { Master, MasterRequest, ReplyCallback } from '../core/master.interface.js';
import { MemoryMaster } from '../memory/memory-master.js';
import type { LoggerService } from '@nestjs/common';
import { IdleCheck, QuorumWatch, type RedlockStatus } from '../core/health/status.js';
import { type LockObserver, ObserverHub } from '../core/observer.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import type { RestartGuard } from '../redis/guard/restart-guard.js';
import { apart } from '../runtime/system-clock.js';
import { SystemRandom } from '../runtime/system-random.js';
import { LockService } from './lock.service.js';
import { logTo } from './log-observer.js';
import { type OpenedMasters, openMasters } from './masters.js';
import { reportTo, resolveModule, started } from './module-settings.js';
import type { RedlockModuleOptions } from './redlock-module-options.interface.js';

function adviceOnBoot({ answers }: QuorumUnavailableError, masters: number): string {
  const start = 'cannot start without a majority of the masters';
  return isHopeless(answers, masters)
    ? `${start}: waiting does not help, the servers or their settings have to be corrected`
    : `${start}; \`lazyConnect: true\` starts without waiting for them`;
}

const MEMORY_IN_PRODUCTION =
  "masters: 'memory' with NODE_ENV=production: locks are within this process only and exclude no other one; " +
  'give the addresses of Redis servers';

interface Measuring {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly all: number;
  readonly warn: (message: string) => void;
}

async function warnOfRoundTrips(
  servers: OpenedMasters['servers'],
  { clock, settings: { masterTimeout, keyPrefix }, all, warn }: Measuring,
): Promise<void> {
  const key = new Keyspace(keyPrefix).probe;
  const trips = await measureRoundTrips(servers, { key, clock, enough: masterTimeout });
  const warning = warningOfRoundTrips(trips, masterTimeout, all);
  if (warning !== undefined) warn(warning);
}

// As soon as a quorum of the servers is connected, which may be now.
function measureOnce(redlock: Redlock, servers: OpenedMasters['servers'], measure: () => Promise<void>): void {
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

// Replaces the masters with `enabled: false`. Each key contains the token of its acquisition, so no acquisition is ever
// refused. Everything else, fencing tokens included, works as on a master in memory.
class OpenMaster extends MemoryMaster {
  constructor(clock: Clock) {
    super(clock, 'none');
  }

  override ask(request: MasterRequest, reply: ReplyCallback): void {
    super.ask(
      'token' in request ? { ...request, keys: request.keys.map((key) => request.token + key) } : request,
      reply,
    );
  }

  override onReady(): void {
    // This master is always ready; it would have to keep a listener for each acquisition.
  }
}

export class RedlockRuntime {
  constructor(
    readonly service: LockService,
    private readonly redlock: Redlock,
    private readonly drainTimeout: number,
    private readonly observer: LockObserver = {},
    private readonly idleCheck?: IdleCheck,
  ) {}

  stop(): void {
    this.redlock.stop();
  }

  async close(): Promise<void> {
    this.redlock.stop();
    this.idleCheck?.end();
    await this.redlock.drain(this.drainTimeout);
    await this.redlock.close();
    this.service.close();
    this.observer.stopped?.();
  }
}

export async function createRedlockRuntime(
  options: RedlockModuleOptions,
  logger: LoggerService,
  name = 'default',
): Promise<RedlockRuntime> {
  const { settings, connectTimeout, drainTimeout, lazyConnect, enabled, clock, observers } = resolveModule(options);
  const warn = (message: string): void => {
    try {
      logger.warn(message);
    } catch {
      // A logger that throws must not fail the call.
    }
  };
  const warning = warningOfTtl(settings.ttl);
  if (warning !== undefined) warn(warning);
  const random = new SystemRandom();
  const status = (): RedlockStatus => redlock.status();
  const hub = new ObserverHub(reportTo(logger), apart).add(
    logTo(logger, clock, () => guard?.newMasters.usualWait, status),
  );
  const { observer } = hub;
  if (!enabled) {
    logger.warn('locking is disabled by `enabled: false`: everything runs without locks');
    const master = new OpenMaster(clock);
    const open = (): Redlock => new Redlock([master], settings, { clock, random, observer });
    return new RedlockRuntime(new LockService(open, settings, warn, hub, false), open(), 0);
  }
  hub.add(...started(observers, { name, status }, logger));
  const quorum = new QuorumWatch(status, observer);
  hub.add(quorum);
  const dependencies = { clock, random, observer };
  const clockLags = (milliseconds: number): void => redlock.noteStandstill(milliseconds);
  let opened: OpenedMasters;
  try {
    opened = openMasters(options.masters, { ...dependencies, settings, clockLags });
  } catch (error) {
    observer.stopped?.();
    throw error;
  }
  const { masters, servers, guard, advice } = opened;
  const witness = guard?.isNeeded ? guard : undefined;
  const redlock: Redlock = new Redlock(masters, settings, { ...dependencies, witness, advice });
  const service = new LockService(() => redlock, settings, warn, hub);
  // A master in memory hangs only if a test lets it.
  const mayHang = masters.some((master) => !(master instanceof MemoryMaster));
  const idleCheck = mayHang ? new IdleCheck(clock, () => redlock.checkMasters()) : undefined;
  const runtime = new RedlockRuntime(service, redlock, drainTimeout, observer, idleCheck);
  announce(logger, masters, settings);
  if (options.masters === 'memory' && process.env.NODE_ENV === 'production') warn(MEMORY_IN_PRODUCTION);
  redlock.onReady(quorum.check);
  const begin = (): Promise<void> => watch({ quorum, redlock, guard, idleCheck });
  const measure = (): Promise<void> => warnOfRoundTrips(servers, { clock, settings, all: masters.length, warn });
  if (lazyConnect) {
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
  logger.log(
    `locks need ${quorumOf(masters.length)} of ${counted(masters.length, 'master')}: ${names}; ttl ${settings.ttl} ms`,
  );
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

// Begins when the guard knows what the masters that have connected are.
async function watch({ quorum, redlock, guard, idleCheck }: Watched): Promise<void> {
  await guard?.decided();
  if (redlock.isStopped || quorum.hasBegun) return;
  quorum.begin();
  idleCheck?.begin();
}
