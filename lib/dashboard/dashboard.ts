import type { IncomingHttpHeaders } from 'node:http';
import {
  BadRequestException,
  ForbiddenException,
  HttpException,
  Logger,
  NotFoundException,
  type OnModuleInit,
} from '@nestjs/common';
import type { DiscoveryService, ModuleRef } from '@nestjs/core';
import { type AuditRecord, isRevoked, type Target } from '../core/operator/forced-release.js';
import { showNames } from '../core/display.js';
import { describeReply, isLockError, RedlockConfigError } from '../core/errors.js';
import { leaderFrom, type LeaderReport } from '../core/leadership.js';
import { resolveResources } from '../core/settings/resources.js';
import type { LockHolder } from '../core/holder.js';
import type { LockInspection, SlotInspection } from '../core/operator/inspector.js';
import { getLockServiceToken, isLockService } from '../nest/lock-service.token.js';
import type { LockService } from '../nest/lock.service.js';
import { SERVICE_NAME } from '../nest/lock.explorer.js';
import {
  availabilityOf,
  EventLog,
  type HolderView,
  type InspectionView,
  type PermitView,
  type ServiceView,
  type StateView,
} from './views.js';
import { refuseOtherHosts } from './hosts.js';
import { JobWatch, ServiceWatch } from './service-watch.js';
import type { Placement, DashboardSettings } from './options.js';
import { ReleaseAction, type ForcedReleaseRequest, ticketOf } from './release.action.js';

const OFF = 'Locking is off by `enabled: false`: everything runs without locks, and excludes nothing.';

// What a page has already: `after` is the number of its last event in `log`.
interface StateRequest {
  readonly log: string;
  readonly after: number;
}

interface DashboardContext {
  readonly settings: DashboardSettings;
  readonly placement: Placement;
  readonly discovery: DiscoveryService;
  readonly modules: ModuleRef;
}

// It asks the masters nothing unless a page is open, and has no timers.
export class Dashboard implements OnModuleInit {
  private readonly logger = new Logger('RedlockDashboard');
  private readonly events = new EventLog();
  private readonly action = new ReleaseAction(this.logger, this.events);
  private watches: readonly ServiceWatch[] = [];
  private jobWatch = new JobWatch(undefined);

  constructor(private readonly context: DashboardContext) {}

  // Besides the `Host` of a request.
  get origins(): readonly string[] {
    return this.context.settings.origins;
  }

  // With guards, the host is checked only if `hosts` are given.
  checkHost(headers: IncomingHttpHeaders): void {
    const { settings, placement } = this.context;
    if (placement.guards.length === 0 || settings.hosts) refuseOtherHosts(headers, settings.hosts ?? []);
  }

  onModuleInit(): void {
    const { discovery, modules, placement, settings } = this.context;
    const names = discovery.getProviders().filter(({ token }) => token === SERVICE_NAME);
    if (names.length === 0) {
      const requirement = 'needs a lock service to show: import RedlockModule.forRoot(...), too';
      throw new RedlockConfigError('RedlockDashboardModule', undefined, requirement);
    }
    const services = new Map<unknown, string | null>();
    for (const { instance } of names) {
      const name = instance as string | null;
      const locks: unknown = modules.get(getLockServiceToken(name ?? undefined), { strict: false });
      // In a test, several modules may lead to one service.
      if (!services.has(locks)) services.set(locks, name);
    }
    this.watches = [...services].flatMap(([locks, name]) => {
      if (isLockService(locks)) return new ServiceWatch(name, locks, this.events);
      this.skip(name);
      return [];
    });
    this.jobWatch = JobWatch.find(modules);
    for (const watch of this.watches) {
      watch.begin();
      this.recordBeginning(watch);
    }
    const does = settings.actions ? 'locks can be released by force there' : 'read-only';
    this.logger.log(`the dashboard of locks is at /${placement.path} below the global prefix: ${does}`);
    if (placement.guards.length > 0) return;
    const hosts = ['IP addresses', 'localhost', ...(settings.hosts ?? [])].join(', ');
    this.logger.warn(
      `the dashboard of locks has no guard of its own, because of guards: 'none': it is served under ${hosts} only`,
    );
  }

  async state({ log, after }: StateRequest): Promise<StateView> {
    const [services, jobs] = await Promise.all([
      Promise.all(this.watches.map((watch) => viewOf(watch))),
      this.jobWatch.jobs(),
    ]);
    return {
      at: Date.now(),
      instance: services[0]?.instance ?? '',
      actions: this.context.settings.actions,
      log: this.events.id,
      events: this.events.after(log === this.events.id ? after : 0),
      services,
      jobs,
    };
  }

  async inspect(service: string | null, target: Target): Promise<InspectionView> {
    const { locks } = this.watchOf(service);
    return this.checked(async () => {
      const inspection = await inspectTarget(locks, target);
      if (target.slot !== undefined) return this.describe(locks, target, inspection);
      // A user may have typed the title of a permit, which can be the name of a lock as well.
      const permit = inspection.state === 'free' ? permitIn(target.resource) : undefined;
      const other = permit && (await inspectTarget(locks, permit));
      if (permit && other && other.state !== 'free') return this.describe(locks, permit, other);
      const permits = await locks.operator.takenPermits(target.resource);
      const view = await this.describe(locks, target, inspection);
      if (!permits || permits.slots.length === 0) return view;
      return { ...view, permits: { waiting: permits.waiting, slots: permits.slots.map(permitView) } };
    });
  }

  private async describe(locks: LockService, target: Target, inspected: LockInspection): Promise<InspectionView> {
    const { masters, holder, ...inspection } = inspected;
    const leader = holder && target.slot === undefined ? await leaderOf(locks, target.resource, holder) : undefined;
    const owners = this.context.settings.actions ? await locks.operator.owners(target) : undefined;
    const ticket = owners && ticketOf(owners);
    return {
      ...inspection,
      ...(target.slot !== undefined && { slot: target.slot }),
      at: Date.now(),
      masters: masters.map(({ master, answer }) => ({
        ...{ master, kind: answer?.kind ?? 'timeout' },
        text: answer?.kind === 'granted' ? 'free' : describeReply(answer),
      })),
      ...(holder && { holder: holderView(holder) }),
      ...(leader?.term !== undefined && { term: leader.term }),
      ...(ticket !== undefined && { ticket }),
      ...(owners && { revoked: isRevoked(owners, masters.length) }),
    };
  }

  async release(service: string | null, request: object, wanted: ForcedReleaseRequest): Promise<AuditRecord> {
    const { settings } = this.context;
    if (!settings.actions) throw new ForbiddenException('the dashboard is read-only: it needs actions: true');
    const watch = this.watchOf(service);
    const by = await this.userOf(request);
    return this.checked(() => {
      resolveResources('resource', wanted.target.resource);
      return this.action.run(watch, by, wanted);
    });
  }

  private async userOf(request: object): Promise<string> {
    const { actor } = this.context.settings;
    let user: unknown;
    try {
      user = actor ? await actor(request) : addressOf(request);
    } catch (error) {
      if (error instanceof HttpException) throw error;
      this.logger.error(`the option actor failed, so nothing was released: ${String(error)}`);
    }
    if (typeof user === 'string' && user !== '') return user;
    throw new ForbiddenException('the option actor has not named the user of this request: nothing was released');
  }

  private watchOf(name: string | null): ServiceWatch {
    const watch = this.watches.find((each) => each.name === name);
    if (!watch) throw new NotFoundException('there is no lock service with this name');
    return watch;
  }

  private async checked<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isLockError(error) && error.code === 'LOCK_CONFIG') throw new BadRequestException(error.message);
      throw error;
    }
  }

  // A test may have replaced a service by an object of its own, which has no masters.
  private skip(name: string | null): void {
    const which = `the lock service${name === null ? '' : ` ${showNames([name])}`}`;
    const text = `${which} is not shown: the object in its place is not a LockService, as memoryLockService() would be`;
    this.logger.warn(text);
    this.events.add(name, 'warning', text);
  }

  // Events before the boot of the dashboard are not known.
  private recordBeginning({ name, locks, isOff }: ServiceWatch): void {
    if (isOff) {
      this.events.add(name, 'warning', OFF);
      return;
    }
    const status = locks.status();
    const can = status.canVote ? 'locks can be taken' : 'no lock can be taken';
    this.events.add(name, status.canVote ? 'good' : 'bad', `at the start ${can}: ${availabilityOf(status).reason}`);
  }
}

function inspectTarget(locks: LockService, { resource, slot }: Target): Promise<LockInspection> {
  return slot === undefined ? locks.inspect(resource) : locks.operator.inspect(resource, slot);
}

// A title such as `stripe #3`.
function permitIn(text: string): Target | undefined {
  const [, resource, slot] = /^(.+) #(\d{1,3})$/s.exec(text) ?? [];
  return resource === undefined ? undefined : { resource, slot: Number(slot) };
}

function permitView({ slot, state, remaining, holder }: SlotInspection): PermitView {
  return { slot, state, remaining, ...(holder && { holder: holderView(holder) }) };
}

async function leaderOf(locks: LockService, resource: string, holder: LockHolder): Promise<LeaderReport | undefined> {
  const snapshot = await locks.readState(resource).catch(() => undefined);
  return leaderFrom(holder, snapshot?.value);
}

function holderView({ instance, since }: LockHolder): HolderView {
  return { instance, since: since.getTime() };
}

async function viewOf(watch: ServiceWatch): Promise<ServiceView> {
  const status = await watch.status();
  const { name, isOff, own, contention } = watch;
  if (isOff) return { ...status, canVote: false, masters: [], reason: OFF, name, isOff, ...own, contention };
  return { ...status, ...availabilityOf(status), name, isOff, ...own, contention };
}

function addressOf(request: object): string {
  const ip: unknown = Reflect.get(request, 'ip');
  return typeof ip === 'string' && ip !== '' ? ip : 'an unknown address';
}
