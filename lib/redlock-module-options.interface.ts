import type { Clock } from './core/clock.js';
import type { Duration } from './core/duration.js';
import type { Master } from './core/master.interface.js';
import type { Observer } from './core/observer.js';
import type { RedlockOptions } from './core/options.js';
import type { RedisMasterSource } from './redis/master-source.js';

/**
 * One master: a URL (`redis://`, `rediss://`), the path of a unix socket, the options of an ioredis client, or a client,
 * whose settings are copied: the library opens connections of its own and never touches the client's. Tests may give a
 * `MemoryMaster` of `nestjs-redlock/testing`.
 */
export type MasterSource = RedisMasterSource | Master;

/** Options of `RedlockModule`. Only `masters` is required; everything is checked at boot. */
export interface RedlockModuleOptions extends RedlockOptions {
  /**
   * The independent masters, an odd number of them, without replication between each other. `'memory'` locks inside
   * this process only, without Redis: for development and unit tests.
   */
  masters: readonly MasterSource[] | 'memory';
  /**
   * `false`: everything runs without locks, after one warning at boot. For scripts and tests. Fencing tokens still grow
   * with every lock, from the microseconds of the wall clock, but only in this process.
   * @default true
   */
  enabled?: boolean;
  /**
   * `true`: boot does not wait for the masters, and does not fail without a majority of them.
   * @default false
   */
  lazyConnect?: boolean;
  /**
   * How long boot waits for a majority of the masters.
   * @default '5s'
   */
  connectTimeout?: Duration;
  /**
   * How long shutdown waits for locks that are still held by running work; afterwards they are taken away.
   * @default '5s'
   */
  drainTimeout?: Duration;
  /**
   * Source of time, for tests: a `ManualClock` of `nestjs-redlock/testing`.
   * @default the clocks of this process
   */
  clock?: Clock;
  /**
   * Who else hears what happens, beside the log: for example `openTelemetry()` of `nestjs-redlock/opentelemetry`.
   * @default []
   */
  observers?: readonly Observer[];
}

/** What is said where the module is registered, because Nest must know it before the options. */
export interface RedlockModuleExtras {
  /**
   * Whether other modules can inject and decorate without importing the module.
   * @default true
   */
  isGlobal?: boolean;
  /** Tells several lock services of one application apart: see `@InjectLockService(name)`. */
  name?: string;
}

/** Gives the options in `forRootAsync({ useClass })` and `forRootAsync({ useExisting })`. */
export interface RedlockOptionsFactory {
  /** Called once, at boot. What it throws ends the boot. */
  createRedlockOptions(): RedlockModuleOptions | Promise<RedlockModuleOptions>;
}
