import type { Clock, Timer } from '../redlock/clock.js';
import { QuorumUnavailableError } from '../redlock/errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { IdleCheck, isHopeless, measureRoundTrips, QuorumWatch, warningOfRoundTrips } from '../masters/connect.js';
import { counted } from '../redlock/names.js';
import { Keyspace } from '../settings/keyspace.js';
import { LockManager } from '../locks/lock-manager.js';
import { type Settings, warningOfTtl } from '../settings/settings.js';
import type { Master, MasterRequest, ReplyCallback } from '../masters/master.interface.js';
import { MemoryMaster } from '../memory/memory-master.js';
import type { LoggerService } from '@nestjs/common';
import type { RedlockStatus } from '../operate/status.js';
import { askedObserver, type LockObserver, type ObservedService, ObserverHub } from '../operate/observer.js';
import { quorumOf } from '../redlock/quorum.js';
import { apart } from '../runtime/system-clock.js';
import { ownController, SystemRandom } from '../runtime/system.js';
import { LockService } from './lock.service.js';
import { logTo } from './log-observer.js';
import { countOf, adviceFor, reportTo, resolveModule } from './module-settings.js';
import { warnOfMemory, warnWithoutHooks } from './production.js';
import type { MasterSource, RedlockModuleOptions } from './redlock-module-options.interface.js';
import type { Random } from '../redlock/holder.js';
import { hasMethods } from '../settings/table.js';
import { languageOf } from '../redis/connection-problem.js';
import { doctorCommand } from '../redis/doctor-command.js';
import { type ServerMaster, isServerMaster, refuseTwins, masterFrom } from '../redis/master-source.js';
import type { RedisMasterContext } from '../redis/redis-client.interface.js';
import { RequestEncoder } from '../redis/request-encoding.js';
import { redactAddress } from '../redis/urls.js';

interface Dependencies {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
}

interface OpenedMasters {
  readonly masters: readonly Master[];
  readonly servers: readonly ServerMaster[];
  // How to examine the servers.
  readonly advice: string | undefined;
}

// None of them is connected yet.
function openMasters(sources: unknown, dependencies: Dependencies): OpenedMasters {
  const { settings } = dependencies;
  const masters = createMasters(sources, { ...dependencies, languageOf, encoder: new RequestEncoder() });
  const servers = masters.filter(isServerMaster);
  const urls = servers.map(({ placeholderUrl }) => placeholderUrl);
  const advice = urls.length > 0 ? `To examine them: ${doctorCommand(urls, settings)}` : undefined;
  return { masters, servers, advice };
}

const MASTER: readonly (keyof Master)[] = [
  ...(['ask', 'connect', 'problem', 'identity', 'onReady', 'listen', 'close'] as const),
];

function createMasters(sources: unknown, context: RedisMasterContext): Master[] {
  if (sources === 'memory') return [new MemoryMaster(context.clock)];
  const count = countOf(sources);
  if (count === undefined) {
    // A string may be an address with a password.
    const shown = typeof sources === 'string' ? redactAddress(sources) : sources;
    const requirement = `must be a list of at least one master, or 'memory'${adviceFor(sources)}`;
    throw new RedlockConfigError('masters', shown, requirement);
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

function createMaster(option: string, source: MasterSource, context: RedisMasterContext): Master {
  if (!hasMethods(source, ['ask'])) return masterFrom(option, source, context);
  if (hasMethods(source, MASTER) && typeof Reflect.get(source, 'name') === 'string') return source as Master;
  throw new RedlockConfigError(option, source, `must have a name and the methods ${MASTER.join(', ')}`);
}

function adviceOnBoot({ answers }: QuorumUnavailableError, masters: number): string {
  const start = 'cannot start without a majority of the masters';
  return isHopeless(answers, masters)
    ? `${start}: waiting does not help, the servers or their settings have to be corrected`
    : `${start}; \`lazyConnect: true\` starts without waiting for them`;
}

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
function measureOnce(redlock: LockManager, servers: OpenedMasters['servers'], measure: () => Promise<void>): void {
  let isDone = false;
  const check = (): void => {
    if (isDone || redlock.isStopped) return;
    const connected = servers.filter((server) => !server.problem()).length;
    if (connected < redlock.masters.status().quorum) return;
    isDone = true;
    void measure();
  };
  redlock.masters.onReady(check);
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
  private closing: Promise<void> | undefined;

  constructor(
    readonly service: LockService,
    private readonly redlock: LockManager,
    private readonly drainTimeout: number,
    private readonly observer: LockObserver = {},
    private readonly idleCheck?: IdleCheck,
    private readonly signalCheck?: Timer,
  ) {}

  stop(): void {
    this.redlock.stop();
  }

  close(): Promise<void> {
    return (this.closing ??= this.closeOnce());
  }

  private async closeOnce(): Promise<void> {
    this.redlock.stop();
    this.idleCheck?.end();
    this.signalCheck?.cancel();
    await this.redlock.drain(this.drainTimeout);
    await this.redlock.close();
    this.service.close();
    this.observer.stopped?.();
  }
}

interface NewRuntime {
  readonly runtime: RedlockRuntime;
  // Resolves when the service can be used.
  readonly connect: () => Promise<void>;
}

// Opens nothing yet.
export function createRedlockRuntime(
  options: RedlockModuleOptions,
  logger: LoggerService,
  name = 'default',
): NewRuntime {
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
  const status = (): RedlockStatus => redlock.masters.status();
  const hub = new ObserverHub(reportTo(logger), apart).add(logTo(logger, clock, status));
  const { observer } = hub;
  let service: LockService;
  const noteTtl = (where: string, ttl: number): void => service.warnOfTtl(ttl, where);
  const surroundings = { clock, random, observer, controller: ownController, noteTtl };
  if (!enabled) {
    logger.warn('locking is disabled by `enabled: false`: everything runs without locks');
    const master = new OpenMaster(clock);
    const redlock = new LockManager([master], settings, surroundings);
    service = new LockService(() => redlock, settings, warn, hub, false, ['disabled']);
    return { runtime: new RedlockRuntime(service, redlock, drainTimeout), connect: () => Promise.resolve() };
  }
  hub.add(...started(observers, { name, status }, logger));
  const quorum = new QuorumWatch(status, observer);
  hub.add(quorum);
  let opened: OpenedMasters;
  try {
    opened = openMasters(options.masters, { ...surroundings, settings });
  } catch (error) {
    observer.stopped?.();
    throw error;
  }
  const { masters, servers, advice } = opened;
  const redlock: LockManager = new LockManager(masters, settings, { ...surroundings, advice });
  const known = masters.map((master) => (isServerMaster(master) ? master.placeholderUrl : master));
  service = new LockService(() => redlock, settings, warn, hub, true, known);
  // A master in memory hangs only if a test lets it.
  const mayHang = masters.some((master) => !(master instanceof MemoryMaster));
  const idleCheck = mayHang ? new IdleCheck(clock, () => redlock.masters.ask()) : undefined;
  const signalCheck = warnWithoutHooks(clock, connectTimeout, warn);
  const runtime = new RedlockRuntime(service, redlock, drainTimeout, observer, idleCheck, signalCheck);
  announce(logger, masters, settings);
  warnOfMemory(options.masters, warn);
  redlock.masters.onReady(quorum.check);
  const begin = (): void => watch({ quorum, redlock, idleCheck });
  const measure = (): Promise<void> => warnOfRoundTrips(servers, { clock, settings, all: masters.length, warn });
  const connect = async (): Promise<void> => {
    if (lazyConnect) {
      const deadline = clock.schedule(connectTimeout, begin).unref();
      void redlock.masters.open().then(() => {
        deadline.cancel();
        measureOnce(redlock, servers, measure);
        begin();
      });
      return;
    }
    try {
      await redlock.masters.connect(connectTimeout);
    } catch (error) {
      const isEnded = redlock.isStopped;
      await runtime.close();
      if (!isEnded && error instanceof QuorumUnavailableError) logger.error(adviceOnBoot(error, masters.length));
      throw error;
    }
    if (redlock.isStopped) return;
    begin();
    void measure();
  };
  return { runtime, connect };
}

// An observer may return another one for each service.
function started(observers: readonly LockObserver[], service: ObservedService, logger: LoggerService): LockObserver[] {
  const failed = reportTo(logger);
  return observers.map((observer) => askedObserver(() => observer.started?.(service), failed) ?? observer);
}

function announce(logger: LoggerService, masters: readonly Master[], settings: Settings): void {
  const names = masters.map(({ name }) => name).join(', ');
  logger.log(
    `locks need ${quorumOf(masters.length)} of ${counted(masters.length, 'master')}: ${names}; ttl ${settings.ttl} ms`,
  );
  if (masters.length % 2 === 0) {
    const fewer = masters.length - 1;
    const advice = `give ${fewer} or ${masters.length + 1}`;
    logger.warn(
      `masters: ${masters.length} is an even number and survives no more failures than ${fewer} would: ${advice}`,
    );
  }
}

interface Watched {
  readonly quorum: QuorumWatch;
  readonly redlock: LockManager;
  readonly idleCheck: IdleCheck | undefined;
}

function watch({ quorum, redlock, idleCheck }: Watched): void {
  if (redlock.isStopped || quorum.hasBegun) return;
  quorum.begin();
  idleCheck?.begin();
}
