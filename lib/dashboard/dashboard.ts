import type { IncomingHttpHeaders } from 'node:http';
import {
  BadRequestException,
  ConflictException,
  ForbiddenException,
  HttpException,
  Logger,
  NotFoundException,
  type OnModuleInit,
} from '@nestjs/common';
import type { DiscoveryService, ModuleRef } from '@nestjs/core';
import {
  isLockError,
  type LockHolder,
  type LockInspection,
  type LockService,
  RedlockConfigError,
  type RedlockStatus,
  type SlotInspection,
} from '../index.js';
import { calledMethods, describeReply, display, inspections, lockServicesIn } from '../internal.js';
import { availabilityOf, EventLog, type JobView, ServiceWatch, watchJobs } from './service-watch.js';
import { refuseOtherHosts } from './hosts.js';
import type { Placement, DashboardSettings } from './options.js';
import { createHash } from 'node:crypto';

const OFF = 'Locking is off by `enabled: false`: everything runs without locks, and excludes nothing.';

export interface StateView {
  // Milliseconds since the Unix epoch.
  readonly at: number;
  readonly instance: string;
  readonly actions: boolean;
  readonly log: string;
  // Those that the page does not have yet, the oldest first.
  readonly events: ReturnType<EventLog['after']>;
  readonly services: readonly ServiceView[];
  readonly jobs: readonly JobView[];
}

interface ServiceView extends RedlockStatus, ReturnType<typeof availabilityOf> {
  // `null` for the service without a name.
  readonly name: string | null;
  // Locking is off: there are no masters and no locks.
  readonly isOff: boolean;
  readonly held: inspections.OwnLocks;
  readonly waiting: inspections.OwnLocks;
}

interface HolderView {
  readonly instance: string;
  // Milliseconds since the Unix epoch.
  readonly since: number;
}

interface PermitView extends Pick<SlotInspection, 'slot' | 'state' | 'remaining'> {
  readonly holder?: HolderView;
}

export interface InspectionView extends Omit<LockInspection, 'masters' | 'holder'> {
  // Absent for a lock.
  readonly slot?: number;
  readonly at: number;
  readonly masters: readonly { readonly master: string; readonly kind: string; readonly text: string }[];
  readonly holder?: HolderView;
  // Of the leader of an election, as its state has it.
  readonly term?: number;
  // They do not exclude the lock of that name. Absent without any, and for a permit.
  readonly permits?: { readonly waiting: number; readonly slots: readonly PermitView[] };
  // Identifies the holder that was found, without its token. Absent if there is nothing to release.
  readonly ticket?: string;
  // Released by force, and its keys have not expired yet.
  readonly revoked?: boolean;
}

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
  private watches: readonly ServiceWatch[] = [];
  private jobs = watchJobs(undefined);

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
    const services = lockServicesIn(discovery, modules);
    if (services.length === 0) {
      const requirement = 'needs a lock service to show: import RedlockModule.forRoot(...), too';
      throw new RedlockConfigError('RedlockDashboardModule', undefined, requirement);
    }
    this.watches = services.flatMap(({ name, locks }) => {
      if (locks) return new ServiceWatch(name, locks, this.events);
      this.skip(name);
      return [];
    });
    // By a token, because the dashboard does not need the package on which jobs run.
    this.jobs = watchJobs(
      calledMethods.provided(modules, calledMethods.CALLED_METHODS.jobs.token) as Parameters<typeof watchJobs>[0],
    );
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
    const [services, jobs] = await Promise.all([Promise.all(this.watches.map((watch) => viewOf(watch))), this.jobs()]);
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

  async inspect(service: string | null, target: inspections.Target): Promise<InspectionView> {
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

  private async describe(
    locks: LockService,
    target: inspections.Target,
    inspected: LockInspection,
  ): Promise<InspectionView> {
    const { masters, holder, ...inspection } = inspected;
    const isLock = holder && target.slot === undefined;
    const leader = isLock ? await locks.operator.leader(target.resource, holder).catch(() => undefined) : undefined;
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
      ...(owners && { revoked: locks.operator.isRevoked(owners) }),
    };
  }

  async release(
    service: string | null,
    request: object,
    wanted: ForcedReleaseRequest,
  ): Promise<inspections.AuditRecord> {
    const { settings } = this.context;
    if (!settings.actions) throw new ForbiddenException('the dashboard is read-only: it needs actions: true');
    const watch = this.watchOf(service);
    const by = await this.userOf(request);
    return this.checked(() => this.releaseBy(by, watch, wanted));
  }

  private async releaseBy(
    by: string,
    watch: ServiceWatch,
    { target, ticket, confirm }: ForcedReleaseRequest,
  ): Promise<inspections.AuditRecord> {
    const { resource, slot } = target;
    if (confirm !== (slot === undefined ? resource : `${resource} #${slot}`)) {
      throw new BadRequestException(this.refuse(by, watch, target, 'its name was not typed as confirmation'));
    }
    const { operator } = watch.locks;
    const owners = await operator.owners(target);
    const found = ticketOf(owners);
    if (found !== ticket) {
      const reason = found === undefined ? 'it is not held any more' : 'another holder has it now';
      throw new ConflictException(this.refuse(by, watch, target, reason));
    }
    const { outcome } = await operator.revoke(target, owners);
    const record: inspections.AuditRecord = {
      ...outcome,
      ...target,
      at: new Date().toISOString(),
      by,
      mode: 'revoked',
    };
    this.record(watch, inspections.auditLine(record));
    return record;
  }

  private refuse(by: string, watch: ServiceWatch, target: inspections.Target, reason: string): string {
    const names = inspections.titleOf(target);
    this.record(
      watch,
      `audit: ${new Date().toISOString()} ${display.showNames([by])} did not release ${names}: ${reason}`,
    );
    return `${names} was not released: ${reason}`;
  }

  private record({ name }: ServiceWatch, line: string): void {
    this.logger.log(name === null ? line : `${line} (lock service ${display.showNames([name])})`);
    this.events.add(name, 'action', line.replace(/^audit: \S+ /, ''));
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
    const which = `the lock service${name === null ? '' : ` ${display.showNames([name])}`}`;
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

interface ForcedReleaseRequest {
  readonly target: inspections.Target;
  // Of the inspection that the user saw.
  readonly ticket: string;
  // The name of the resource, typed by the user; for a permit with its slot, as in `stripe #3`.
  readonly confirm: string;
}

// Identifies the holders that were found. Their tokens cannot be derived from it.
function ticketOf({ held }: inspections.Owners): string | undefined {
  if (held.length === 0) return undefined;
  const tokens = [...new Set(held.map(({ owner }) => owner))].sort();
  return createHash('sha256').update(JSON.stringify(tokens)).digest('hex');
}

function inspectTarget(locks: LockService, { resource, slot }: inspections.Target): Promise<LockInspection> {
  return slot === undefined ? locks.inspect(resource) : locks.operator.inspect(resource, slot);
}

// A title such as `stripe #3`.
function permitIn(text: string): inspections.Target | undefined {
  const [, resource, slot] = /^(.+) #(\d{1,3})$/s.exec(text) ?? [];
  return resource === undefined ? undefined : { resource, slot: Number(slot) };
}

function permitView({ slot, state, remaining, holder }: SlotInspection): PermitView {
  return { slot, state, remaining, ...(holder && { holder: holderView(holder) }) };
}

function holderView({ instance, since }: LockHolder): HolderView {
  return { instance, since: since.getTime() };
}

async function viewOf(watch: ServiceWatch): Promise<ServiceView> {
  const status = await watch.status();
  const { name, isOff, own } = watch;
  if (isOff) return { ...status, canVote: false, masters: [], reason: OFF, name, isOff, ...own };
  return { ...status, ...availabilityOf(status), name, isOff, ...own };
}

function addressOf(request: object): string {
  const ip: unknown = Reflect.get(request, 'ip');
  return typeof ip === 'string' && ip !== '' ? ip : 'an unknown address';
}
