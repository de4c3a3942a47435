import { Global, Inject, Injectable, Logger, type LoggerService, Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModuleRef } from '@nestjs/core';
import {
  type ElectionObserver,
  isLockError,
  type LeaderReport,
  type LockService,
  QuorumUnavailableError,
  RedlockConfigError,
} from '../index.js';
import { calledMethods, display } from '../internal.js';
import { Campaign } from './campaign.js';
import { electionResource, type LeaderDeclaration, resolveElection } from './leader.decorator.js';

function logTo(logger: LoggerService): ElectionObserver {
  return {
    elected: (election, term) => void logger.log(`leads "${election}" in term ${term}`),
    resigned: (election, term, error) => {
      const line = `resigns from "${election}" in term ${term}`;
      if (error === undefined) logger.log(line);
      else logger.error(`${line}, because its method has failed: ${messageOf(error)}`, stackOf(error));
    },
    lost: (election, term, { message }) =>
      void logger.warn(`does not lead "${election}" any more in term ${term}: ${message}`),
    overrun: (election, term) =>
      void logger.warn(
        `the method of "${election}" goes on without leading since term ${term}, and this instance does not campaign ` +
          'before it has ended: pass `leadership.signal` to what it waits for',
      ),
    changed: (election, { instance, term = 'unknown' }) =>
      void logger.debug?.(`${instance} leads "${election}", term ${term}`),
    problem: (election, cause) => {
      const line = `election "${election}": ${messageOf(cause)}`;
      if (isLockError(cause, 'LOCK_CONFIG')) logger.error(line);
      else logger.warn(line);
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : display.formatValue(error);
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}

interface Election {
  readonly campaign: Campaign;
  readonly locks: LockService;
  readonly service: string | undefined;
}

/** The elections of this application. Inject it into any provider. */
@Injectable()
export class Elections implements OnModuleInit {
  private readonly logger = new Logger(Elections.name);
  private readonly observers = calledMethods.observersOf('elections', logTo(this.logger), this.logger);
  private elections: readonly Election[] = [];

  /** @internal */
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModuleRef) private readonly modules: ModuleRef,
  ) {}

  /**
   * Whether this instance leads now, computed from the clock on every read; false from a shutdown on. It says nothing after
   * an `await`: send the term with each write.
   *
   * @param name as in `@Leader(name)`
   * @param service name of the lock service; default: the service without a name
   * @throws {RedlockConfigError} if this application has no such election
   */
  isLeader(name: string, service?: string): boolean {
    return this.electionOf(name, service).campaign.isLeader;
  }

  /**
   * Asks the masters which instance leads. A hint: the answer may be one ttl old, and an instance that crashed is named
   * until its lock has expired.
   *
   * @param name as in `@Leader(name)`
   * @param service name of the lock service; default: the service without a name
   * @returns `undefined` if no instance holds the lock
   * @throws {QuorumUnavailableError} too few masters answer
   * @throws {RedlockConfigError} if this application has no such election
   */
  async leader<T = unknown>(name: string, service?: string): Promise<LeaderReport<T> | undefined> {
    const { locks } = this.electionOf(name, service);
    const resource = electionResource(name);
    const { state, holder, masters } = await locks.inspect(resource);
    if (state === 'unknown') {
      const { quorum } = locks.status();
      throw new QuorumUnavailableError(
        `see which instance leads "${name}"`,
        [resource],
        masters,
        quorum,
        masters.length,
      );
    }
    if (!holder) return undefined;
    return (await locks.operator.leader(resource, holder)) as LeaderReport<T>;
  }

  /**
   * Adds an observer of the elections of this instance, in all lock services. Those of one service are reported to the
   * `elections` of the observers of its module.
   *
   * @returns a function that removes it
   */
  observe(observer: ElectionObserver): () => void {
    return this.observers.add(observer);
  }

  /** @internal */
  overruns(locks: LockService): readonly string[] {
    const overrun = this.elections.filter((each) => each.locks === locks && each.campaign.isOverrun);
    return overrun.map(({ campaign }) => campaign.settings.name);
  }

  /** Finds the methods and checks them. */
  onModuleInit(): void {
    const { discovery, modules } = this;
    const methods = calledMethods.declaredMethods<LeaderDeclaration>(calledMethods.CALLED_METHODS.elections, {
      discovery,
      modules,
    });
    this.elections = methods.map((method) => this.electionFor(method));
    calledMethods.refuseDuplicates(
      calledMethods.CALLED_METHODS.elections,
      methods.map(({ declaration, locks }) => ({ name: declaration.name, declaration, locks })),
    );
  }

  /** @internal */
  start(): void {
    for (const { campaign } of this.elections) campaign.start();
  }

  /** @internal */
  stop(): void {
    for (const { campaign } of this.elections) campaign.stop();
  }

  private electionFor(method: calledMethods.DeclaredMethod<LeaderDeclaration>): Election {
    const { declaration, locks, call } = method;
    const { where, options } = declaration;
    const observer = this.observers.beside(locks.environment.observer);
    const context = { where, call, locks, observer, fraction: Math.random };
    return { campaign: new Campaign(resolveElection(method), context), locks, service: options?.service };
  }

  private electionOf(name: string, service: string | undefined): Election {
    const election = this.elections.find((each) => each.campaign.settings.name === name && each.service === service);
    if (election) return election;
    const names = this.elections.map((each) =>
      [each.campaign.settings.name, each.service ?? []].flat().join(' of service '),
    );
    const which = `(${names.join(', ') || 'none'})`;
    throw new RedlockConfigError(
      'name',
      name,
      `must be the name of an election of this application, with its service ${which}`,
    );
  }
}

/**
 * Holds the elections of the methods under `@Leader`, and provides {@link Elections}. At the shutdown this instance leaves the
 * queues, and asks its methods to end; `RedlockModule` waits for them, for at most its `drainTimeout`. The lock of a method that
 * goes on then is not released, but expires.
 *
 * ```ts
 * imports: [RedlockModule.forRoot([...]), RedlockLeaderModule]
 * ```
 */
@Global()
@Module({
  imports: [DiscoveryModule, calledMethods.startedLast(Elections)],
  providers: [Elections, { provide: calledMethods.CALLED_METHODS.elections.token, useExisting: Elections }],
  exports: [Elections, calledMethods.CALLED_METHODS.elections.token],
})
export class RedlockLeaderModule {}
