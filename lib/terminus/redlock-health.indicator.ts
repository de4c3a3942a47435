import { Injectable, Module } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService, TerminusModule } from '@nestjs/terminus';
import { getLockServiceToken, type LockService, type MasterStatus } from '../index.js';
import { calledMethods } from '../internal.js';

// Elections of a lock service whose methods have lost their lock and go on, without loading the package of elections.
interface Overrunning {
  overruns(locks: LockService): readonly string[];
}

/** What the health check reports about the masters. */
export interface RedlockHealthDetails extends Record<string, unknown> {
  /** Number of masters that must vote. */
  readonly quorum: number;
  /**
   * For each master: `state`, `latency`, `version`, and, if it does not vote, the reason and the remaining time.
   * Durations are in milliseconds.
   */
  readonly masters: readonly MasterStatus[];
  /** Elections whose method goes on here although it has lost the leadership; absent without any. */
  readonly overruns?: readonly string[];
}

/** Options of {@link RedlockHealthIndicator.isHealthy}. */
export interface RedlockHealthOptions {
  /** Name of the lock service to check, if the module is registered with a `name`. */
  readonly service?: string;
}

/**
 * Health of the masters for `@nestjs/terminus`: up while a quorum of them can vote, and no method of a leader goes on without
 * the leadership.
 *
 * ```ts
 * @Get() @HealthCheck()
 * check() { return this.health.check([() => this.redlock.isHealthy('redlock')]); }
 * ```
 */
@Injectable()
export class RedlockHealthIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly modules: ModuleRef,
  ) {}

  /**
   * Asks all masters, for at most a second, or the module's `masterTimeout` if that is longer.
   *
   * @param key key of the result; default: `'redlock'`
   * @returns `up` while a quorum can vote and no method of a leader overruns, `down` otherwise, which Terminus answers with a
   * 503
   * @throws if no `RedlockModule` is registered, or none with the name `options.service`
   */
  async isHealthy<const Key extends string = 'redlock'>(
    key: Key = 'redlock' as Key,
    { service }: RedlockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key, 'up' | 'down', RedlockHealthDetails>> {
    const locks = this.modules.get<LockService>(getLockServiceToken(service), { strict: false });
    const { quorum, canVote, masters } = await locks.probe();
    const elections = calledMethods.provided(this.modules, calledMethods.CALLED_METHODS.elections.token) as
      Overrunning | undefined;
    const overruns = elections?.overruns(locks) ?? [];
    const details: RedlockHealthDetails = {
      ...{ quorum, masters: masters.map(rounded) },
      ...(overruns.length > 0 && { overruns }),
    };
    const indicator = this.indicators.check(key);
    return canVote && overruns.length === 0 ? indicator.up(details) : indicator.down(details);
  }
}

function rounded(status: MasterStatus): MasterStatus {
  const { latency } = status;
  return {
    ...withWholeWait(status),
    ...(latency !== undefined && { latency: Math.round(latency * 100) / 100 }),
  };
}

function withWholeWait<T extends { readonly remaining?: number }>(status: T): T {
  return status.remaining === undefined ? status : { ...status, remaining: Math.ceil(status.remaining) };
}

/** Provides and exports the {@link RedlockHealthIndicator}. */
@Module({ imports: [TerminusModule], providers: [RedlockHealthIndicator], exports: [RedlockHealthIndicator] })
export class RedlockHealthModule {}
