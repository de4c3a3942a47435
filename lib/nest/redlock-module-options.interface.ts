import type { Clock } from '../redlock/clock.js';
import type { Duration } from '../settings/duration.js';
import type { Master } from '../masters/master.interface.js';
import type { LockObserver } from '../operate/observer.js';
import type { RedlockOptions } from '../settings/options.js';
import type { RedisMasterSource } from '../redis/source.interface.js';

/**
 * One master: a URL (`redis://`, `rediss://`), the path of a unix socket, the options of an ioredis client, or an
 * ioredis client, whose settings are copied: the library opens its own connections and never uses the client's. A
 * Redis Cluster is one master, too: a `redis+cluster://` URL, options with `cluster`, or an ioredis `Cluster`. Tests
 * may pass a `MemoryMaster` of `nestjs-redlock/testing`.
 */
export type MasterSource = RedisMasterSource | Master;

/** Options of `RedlockModule`. Only `masters` is required, unless `enabled` is `false`; everything is checked at boot. */
export type RedlockModuleOptions = LockingModuleOptions | DisabledModuleOptions;

/** Options of a lock service that locks. */
export interface LockingModuleOptions extends RedlockOptions {
  /**
   * The independent masters: an odd number, without replication. `'memory'` locks inside this process
   * only, without Redis: for development and unit tests.
   */
  masters: readonly MasterSource[] | 'memory';
  /**
   * `false`: everything runs without locks and masters. Boot warns of it once. For scripts and
   * tests. Fencing tokens still grow with every lock, starting at the microseconds of the wall clock, but only within
   * this process.
   * @default true
   */
  enabled?: boolean;
  /**
   * `true`: boot does not wait for the masters, and does not fail without them.
   * @default false
   */
  lazyConnect?: boolean;
  /**
   * How long boot waits for a majority of the masters.
   * @default '5s'
   */
  connectTimeout?: Duration;
  /**
   * How long shutdown waits for locks that running work still holds. Afterwards they are lost with the cause `shutdown`.
   * @default '5s'
   */
  drainTimeout?: Duration;
  /**
   * Source of time, for tests. A `ManualClock` of `nestjs-redlock/testing` is one.
   * @default the clocks of this process
   */
  clock?: Clock;
  /**
   * Receive events in addition to the log. `openTelemetry()` of `nestjs-redlock/opentelemetry` makes one.
   * @default []
   */
  observers?: readonly LockObserver[];
}

/** Options of a lock service that runs everything without locks. It needs no masters and ignores those it is given. */
export interface DisabledModuleOptions extends Partial<Omit<LockingModuleOptions, 'enabled'>> {
  /** Everything runs without locks, after one warning at boot. */
  enabled: false;
}

/** Settings that are given where the module is registered, because Nest needs them before the options. */
export interface RedlockModuleExtras {
  /**
   * Whether other modules need no import. They inject the service and use the decorators.
   * @default true
   */
  isGlobal?: boolean;
  /** Distinguishes several lock services of one application. `@InjectLockService(name)` injects one. */
  name?: string;
}

/** What a factory gives: the masters, or all options. */
export type ProvidedOptions = readonly MasterSource[] | RedlockModuleOptions;

/** Provides the options for `forRootAsync({ useClass })` and `forRootAsync({ useExisting })`. */
export interface RedlockOptionsFactory {
  /** Called once, at boot. An error that it throws aborts the boot. A list is that of the masters. */
  createRedlockOptions(): ProvidedOptions | Promise<ProvidedOptions>;
}
