import type { LoggerService } from '@nestjs/common';
import type { Clock } from '../core/clock.js';
import { SystemClock } from '../runtime/system-clock.js';
import { parseDuration } from '../core/settings/duration.js';
import { QuorumUnavailableError, RedlockConfigError } from '../core/errors.js';
import type { Master, ReplyCallback, MasterRequest } from '../core/master.interface.js';
import type { LockObserver, ObservedService } from '../core/observer.js';
import { ObserverHub } from '../core/observer-hub.js';
import { checkOptionNames } from '../core/settings/option-names.js';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { defaultInstance } from '../runtime/instance.js';
import { SystemRandom } from '../runtime/system-random.js';
import { Redlock } from '../core/redlock.js';
import { REDLOCK_OPTION_NAMES } from '../core/settings/options.js';
import { resolveFlag, resolveSettings, type Settings, warningOfTtl } from '../core/settings/settings.js';
import type { RedlockStatus } from '../core/health/status.js';
import { LockService } from './lock.service.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { IdleCheck } from '../core/health/idle-check.js';
import { QuorumWatch } from '../core/health/quorum-watch.js';
import { redisMaster, refuseTwins } from '../redis/master-source.js';
import { languageOf } from '../redis/port-language.js';
import { RedisMaster } from '../redis/redis-master.js';
import { adviceFor, adviceOnBoot, measureOnce, warnOfRoundTrips } from './boot-advice.js';
import { logTo } from './log-observer.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import type { RedisMasterContext } from '../redis/redis-master-context.interface.js';
import { RestartGuard } from '../redis/guard/restart-guard.js';
import type { MasterSource, RedlockModuleOptions } from './redlock-module-options.interface.js';

/** The names of all options of a lock service. */
export const MODULE_OPTION_NAMES = [
  'masters',
  ...REDLOCK_OPTION_NAMES,
  'enabled',
  'lazyConnect',
  'connectTimeout',
  'drainTimeout',
  'clock',
  'observers',
] as const satisfies (keyof RedlockModuleOptions)[];

const CLOCK: readonly (keyof Clock)[] = ['read', 'schedule', 'afterInput'];
const MASTER: readonly (keyof Master)[] = [
  ...(['ask', 'connect', 'problem', 'identity', 'reconnect', 'onReady', 'listen', 'close'] as const),
];

const DEFAULT_CONNECT_TIMEOUT = 5_000;
const DEFAULT_DRAIN_TIMEOUT = 5_000;

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
  checkModuleOptionNames(options);
  const { instance = defaultInstance() } = options;
  const settings = resolveSettings({ ...options, instance }, countOf(options.masters));
  // A default replaces only `undefined`: `null` is a value.
  const { connectTimeout: connectOption = DEFAULT_CONNECT_TIMEOUT, lazyConnect = false, enabled: use = true } = options;
  const { drainTimeout: drainOption = DEFAULT_DRAIN_TIMEOUT, clock = new SystemClock() } = options;
  const connectTimeout = parseDuration('connectTimeout', connectOption, 1);
  const drainTimeout = parseDuration('drainTimeout', drainOption, 0);
  const lazy = resolveFlag('lazyConnect', lazyConnect);
  const enabled = resolveFlag('enabled', use);
  if (!has(clock, CLOCK)) throw new RedlockConfigError('clock', clock, `must have the methods ${CLOCK.join(', ')}`);
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
        clockLags: (milliseconds) => redlock.shorten(milliseconds),
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
  const servers = masters.filter((master) => master instanceof RedisMaster);
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

/** @throws {RedlockConfigError} unless the value is an object */
export function checkIsObject(options: unknown): asserts options is object {
  if (typeof options === 'object' && options !== null) return;
  throw new RedlockConfigError('options', options, 'must be a list of masters, or an object with `masters`');
}

function checkModuleOptionNames(options: unknown): asserts options is RedlockModuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RedlockConfigError(
      'options',
      options,
      'must be an object with `masters`, also as the result of a factory',
    );
  }
  for (const name of ['isGlobal', 'name']) {
    if (name in options) {
      throw new RedlockConfigError(
        name,
        Reflect.get(options, name),
        'belongs beside useFactory, not into what it gives',
      );
    }
  }
  checkOptionNames('options', options, MODULE_OPTION_NAMES);
}

function createMasters(sources: unknown, context: RedisMasterContext): Master[] {
  if (sources === 'memory') return [new MemoryMaster(context.clock)];
  const count = countOf(sources);
  if (count === undefined) {
    throw new RedlockConfigError('masters', sources, `must be a list of at least one master, or 'memory'`);
  }
  // Not by `map`, which skips the holes of an array.
  const masters = Array.from({ length: count }, (_, index) =>
    createMaster(`masters[${index}]`, (sources as MasterSource[])[index] as MasterSource, {
      ...context,
      isAlone: count === 1,
    }),
  );
  refuseTwins('masters', masters);
  return masters;
}

/** Number of masters; `undefined` unless `sources` is a non-empty array. */
function countOf(sources: unknown): number | undefined {
  try {
    return Array.isArray(sources) && sources.length > 0 ? sources.length : undefined;
  } catch {
    return undefined;
  }
}

function createMaster(option: string, source: MasterSource, context: RedisMasterContext): Master {
  if (!has(source, ['ask'])) return redisMaster(option, source, context);
  if (has(source, MASTER) && typeof Reflect.get(source, 'name') === 'string') return source as Master;
  throw new RedlockConfigError(option, source, `must have a name and the methods ${MASTER.join(', ')}`);
}

/** Whether the value is an object with these methods. */
function has(value: unknown, methods: readonly string[]): value is object {
  try {
    if (typeof value !== 'object' || value === null) return false;
    return methods.every((method) => typeof Reflect.get(value, method) === 'function');
  } catch {
    return false;
  }
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

function observersOf(observers: unknown): readonly LockObserver[] {
  if (observers !== undefined && (!Array.isArray(observers) || !observers.every((each) => has(each, [])))) {
    throw new RedlockConfigError('observers', observers, 'must be a list of observers');
  }
  return observers ?? [];
}

/** The observers of one service: each observer, or the one that it returns for the service. */
function started(observers: readonly LockObserver[], service: ObservedService, logger: LoggerService): LockObserver[] {
  return observers.map((observer) => {
    try {
      return observer.started?.(service) ?? observer;
    } catch (error) {
      reportTo(logger)(error);
      return observer;
    }
  });
}

/** Logs what an observer throws. */
function reportTo(logger: LoggerService): (error: unknown) => void {
  return (error) => {
    try {
      logger.error(`an observer of locks threw: ${String(error)}`);
    } catch {
      // Observers are called from timers and sockets, where an error of the logger would end the process.
    }
  };
}

/**
 * Replaces the masters with `enabled: false`. Each key contains the token of its acquisition, so no acquisition is ever
 * refused. Everything else, fencing tokens included, works as on a master in memory.
 */
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
