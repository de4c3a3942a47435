import { NUL } from '../../../lib/core/keyspace.js';
import type { Actor } from '../actor.js';
import type { SimNode } from '../node.js';
import { areRivals, endOfFault, type Fault, type FaultKind, isExclusive } from '../schedule.js';
import type { Database } from '../server/database.js';
import type { World } from '../world.js';
import { NEW_MASTERS_VOTE_WITHIN, SharingHealth, WOKEN_WITHIN } from './sharing-health.js';
import { Violation } from './violation.js';

/** How long a waiting process takes to subscribe and poll again, in milliseconds. */
const LISTENS_WITHIN = 1_500;
/**
 * How long a process may not be in the queue of the home master after that master granted what others held: the longest
 * pause after a failed attempt, and the attempt, in milliseconds.
 */
const BACK_OFF = 800;
/** How long a process needs until all masters have answered it, in milliseconds. */
const MET_WITHIN = 100;
/**
 * How much longer than the longest ttl a quarantine may last, in milliseconds: drift, round trips, the time until a
 * process notices its cause, and the second until a process that holds nothing reads that others have ended it.
 */
const QUARANTINE_SLACK = 5_000;
/** How long a process without a lock takes to replace a connection over which nothing arrives, in milliseconds. */
const REPLACED_WITHIN = 11_000;

/** Faults after which a master's clock shows a later time than before. */
const JUMPS: ReadonlySet<FaultKind> = new Set<FaultKind>(['serverJump', 'smallStep', 'rollback', 'clone']);

/** Faults that leave the clock of every master and the connections to its address as they are, or end connections. */
const CLOCKS_KEPT: ReadonlySet<FaultKind> = new Set<FaultKind>([
  ...(['pause', 'suspend', 'stumble', 'wallJump', 'die', 'leave', 'storm', 'scriptFlush', 'attachReplica'] as const),
  ...(['slow', 'late', 'partition', 'cut', 'halfOpen', 'hang', 'oom', 'flush', 'detour', 'clientLag'] as const),
]);
/** Faults of the clocks of a client. */
const CLIENT_CLOCKS: ReadonlySet<FaultKind> = new Set<FaultKind>(['suspend', 'clientLag', 'slew', 'stumble']);

interface FirstMet {
  /** True time of the event that caused the quarantine. */
  readonly cause: number;
  readonly at: number;
}

/** Checks availability: new masters vote soon, a quarantine ends, and a fault of one client costs no other its lock. */
export class Health {
  /** By the name of the master. */
  private readonly met = new Map<string, FirstMet>();
  /** The processes that were woken since a resource was released. */
  private readonly woken = new Map<string, Set<string>>();
  /** When a lock on a resource was last released that the home master had not granted, in true time. */
  private readonly strayedAt = new Map<string, number>();
  /** The largest ttl that every process may use. */
  private readonly base: number;

  /** The same for locks that are shared. */
  readonly sharing: SharingHealth;

  constructor(private readonly world: World) {
    this.sharing = new SharingHealth(world);
    this.base = Math.min(...world.nodes.map(({ settings }) => settings.maxTtl), world.settings.maxTtl);
  }

  /** To be called before any event. */
  plan(): void {
    const { nodes, schedule, scheduler, settings } = this.world;
    if (!settings.restartGuard || schedule.servers.length < 3) return;
    for (const node of nodes) {
      const { startsAt } = schedule.processes[node.index] as { startsAt: number };
      const latest = startsAt + NEW_MASTERS_VOTE_WITHIN;
      // A process whose clock is ahead may believe that it holds a lock: its veto lets new masters wait for a whole ttl.
      const isDisturbed = schedule.faults.some(
        (fault) =>
          fault.at <= latest && fault.kind !== 'storm' && (fault.kind === 'stumble' || !isOnOther(fault, node.index)),
      );
      if (isDisturbed) continue;
      scheduler.at(latest, () => this.checkVoting(node));
    }
  }

  /**
   * The longest ttl that any lock can have now. A process that may use longer ttls than the others, but does not, has
   * no lock for which they would have to wait. Neither has a process that left long ago.
   */
  get longestTtl(): number {
    const { nodes, scheduler, schedule } = this.world;
    let longest = this.base;
    for (const { settings, index } of nodes) {
      const { maxTtl } = settings;
      if (maxTtl <= longest) continue;
      const uses = schedule.operations.some(
        ({ process, at, ttl, minHold }) =>
          process === index && at <= scheduler.now && Math.max(ttl, minHold) > this.base,
      );
      const gone = schedule.faults.find(
        (fault) =>
          (fault.kind === 'die' || fault.kind === 'leave') && fault.process === index && fault.at <= scheduler.now,
      );
      const isLongGone = gone !== undefined && scheduler.now - gone.at > this.quarantineOf(maxTtl);
      if (uses && !isLongGone) longest = maxTtl;
    }
    return longest;
  }

  /** The longest ttl that was requested so far. */
  get longestUsedTtl(): number {
    const asked = this.world.actors.filter(({ askedAt }) => askedAt <= this.world.scheduler.now);
    return Math.max(0, ...asked.map(({ operation: { ttl, minHold, newTtl = 0 } }) => Math.max(ttl, minHold, newTtl)));
  }

  /**
   * If faults have hit several masters, a process may not have read all others, and uses the largest ttl that was ever
   * announced to all, or its own maximum. A clock that jumps may have ended the announcements, with the same result.
   */
  get longestGuess(): number {
    const { endpoints, nodes, schedule, scheduler } = this.world;
    const hasJumped = schedule.faults.some(({ kind, at }) => JUMPS.has(kind) && at <= scheduler.now);
    const hit = endpoints.filter((_, index) =>
      schedule.faults.some((fault) => fault.at <= scheduler.now && isOnServer(fault, index)),
    );
    if (hit.length < 2 && !hasJumped && !this.wereNewWhenHit) return this.longestTtl;
    return Math.max(this.longestTtl, ...nodes.map(({ settings }) => settings.maxTtl));
  }

  /** Whether a fault kept new masters from voting early: until they do, they wait for the maximum of a process. */
  private get wereNewWhenHit(): boolean {
    const { endpoints, schedule } = this.world;
    if (schedule.servers.every(({ isKnown }) => isKnown)) return false;
    return schedule.faults.some(
      (fault) => fault.at <= NEW_MASTERS_VOTE_WITHIN && endpoints.some((_, index) => isOnServer(fault, index)),
    );
  }

  /** No clock of a client, whatever it does, leads to the accusation of a master whose clock is right. */
  noteAccusation({ process }: SimNode, master: string, reason: string): void {
    const { assumptions, scheduler, schedule } = this.world;
    if (!reason.includes('jumped') || !assumptions.ratesAreNormal || !this.areServerClocksKept) return;
    // A client that was ahead for a while, and has too few answers of that while, because of another fault or because it
    // had just started, cannot distinguish its clock from the master's: it accuses, because exclusion comes first.
    const ahead = schedule.faults.filter((fault) => fault.kind === 'stumble' && fault.lasts > 0);
    const starts = (at: number): boolean =>
      schedule.processes.some(({ startsAt }) => Math.abs(at - startsAt) < MET_WITHIN);
    if (ahead.length > 0 && (schedule.faults.length > 1 || ahead.some(({ at }) => starts(at)))) return;
    const message = `${process.name} keeps ${master} out although no clock of a master was set: ${reason}`;
    this.world.report(new Violation('a master with a right clock is not accused', scheduler.now, message));
  }

  /** No client whose clocks run takes the clock of another server for a standstill of its own. */
  noteStandstill({ process, index }: SimNode, milliseconds: number): void {
    const { assumptions, scheduler, schedule } = this.world;
    if (!assumptions.ratesAreNormal || !this.areServerClocksKept) return;
    if (schedule.faults.some((fault) => CLIENT_CLOCKS.has(fault.kind) && 'process' in fault && fault.process === index))
      return;
    const message = `${process.name} believes that its clocks stood still for ${milliseconds.toFixed(0)} ms`;
    this.world.report(new Violation('a client whose clocks run does not stand still', scheduler.now, message));
  }

  private get areServerClocksKept(): boolean {
    const { schedule } = this.world;
    // A declared master that is replaced by a copy on a machine with another clock seems to be the same server.
    const isKept = ({ kind }: Fault): boolean => CLOCKS_KEPT.has(kind) || (kind === 'spare' && !schedule.durable);
    return schedule.faults.every(isKept);
  }

  /** Records that a process keeps a master out for so many milliseconds. */
  noteQuarantine(node: SimNode, master: string, milliseconds: number): void {
    const { world } = this;
    const { now } = world.scheduler;
    if (world.assumptions.isSick(node) || !world.assumptions.ratesAreNormal) return;
    const cause = this.lastCause(master);
    const before = this.met.get(master);
    const first = before?.cause === cause ? before : { cause, at: now };
    this.met.set(master, first);
    // If other masters cannot be read meanwhile, the quarantine starts once more.
    const rounds = this.isSimple ? 1 : 2;
    const over = first.at + rounds * this.quarantineOf(this.longestGuess) + this.deafnessOf(node);
    const ends = now + milliseconds / node.process.clocks.rate;
    if (ends <= over) return;
    // It may end earlier than announced, because new masters vote early.
    world.scheduler.at(over, () => this.checkEnded(node, master, { cause, ends }));
  }

  /** How long a process may not learn that others have ended a quarantine, because its connections are half-open. */
  private deafnessOf({ index }: SimNode): number {
    const { schedule, scheduler } = this.world;
    const isDeaf = schedule.faults.some(
      (fault) => fault.kind === 'halfOpen' && fault.process === index && fault.at <= scheduler.now,
    );
    return isDeaf ? REPLACED_WITHIN : 0;
  }

  /** The latest end of a quarantine that a process met at a moment. Without the other masters, it may begin twice. */
  private endOf(met: number): number {
    return met + (this.isSimple ? 1 : 2) * this.quarantineOf(this.longestGuess);
  }

  private checkEnded(
    node: SimNode,
    master: string,
    { cause, ends }: { readonly cause: number; readonly ends: number },
  ): void {
    const { now } = this.world.scheduler;
    if (!node.isThere || this.lastCause(master) !== cause || this.world.assumptions.isSick(node)) return;
    // A process may have begun to use a longer ttl, or a process may have guessed that.
    const over = this.endOf(this.met.get(master)?.at ?? now) + this.deafnessOf(node);
    if (over > now) {
      this.world.scheduler.at(over, () => this.checkEnded(node, master, { cause, ends }));
      return;
    }
    const status = node.redlock.status().masters.find((one) => one.master === master);
    if (status?.state !== 'quarantined') return;
    const message =
      `${node.process.name} keeps ${master} out until ${ends.toFixed(0)} ms, which is ` +
      `${(ends - now).toFixed(0)} ms longer than any lock from before can live`;
    this.world.report(new Violation('a quarantine ends', now, message));
  }

  /** To be called when every quarantine must be over. */
  checkOver(): void {
    const { nodes, assumptions, scheduler } = this.world;
    for (const node of nodes) {
      if (!node.isThere || assumptions.isSick(node)) continue;
      for (const { master, state, reason } of node.redlock.status().masters) {
        if (state !== 'quarantined') continue;
        const message = `${node.process.name} still keeps ${master} out: ${reason}`;
        throw new Violation('a quarantine ends', scheduler.now, message);
      }
    }
  }

  /** How long a master may be kept out for locks with this ttl. */
  quarantineOf(ttl: number): number {
    return ttl * (1 + 2 * this.world.settings.driftFactor) + QUARANTINE_SLACK;
  }

  private checkVoting(node: SimNode): void {
    const { scheduler } = this.world;
    if (!node.isThere || !this.world.assumptions.ratesAreNormal || node.redlock.status().canVote) return;
    const states = node.redlock.status().masters.map(({ master, state }) => `${master} ${state}`);
    const message = `${node.process.name} has no quorum 3 s after it started: ${states.join(', ')}`;
    this.world.report(new Violation('new masters vote within 3 s', scheduler.now, message));
  }

  /**
   * A lock was released. If only one process waits for it, that process must be woken, whatever the order of its list.
   * Without faults, it need not poll.
   *
   * A process that takes over from another lock in the same process asks all masters at once, and may get a quorum
   * without the home master, which is reserved for another process. A process that asks the home master meanwhile
   * gets its grant but no quorum. It then tries again by itself, because no process queues for a key that is free.
   */
  noteRelease(released: Actor, slot: number | undefined): void {
    const { actors, schedule, scheduler } = this.world;
    const { resources, minHold } = released.operation;
    const isSharing = actors.some(
      (other) => !isExclusive(other.operation) && areRivals(other.operation, released.operation),
    );
    if (slot === undefined) for (const resource of resources) this.noteStray(resource, released.node);
    if (minHold > 0) return;
    if (isSharing) {
      if (resources.length === 1) this.sharing.noteRelease(released, slot);
      return;
    }
    if (!this.world.isQuiet || resources.length > 1 || !this.world.assumptions.ratesAreNormal) return;
    this.woken.set(resources[0] as string, new Set());
    const rivals = actors.filter((other) => other.isWaiting && other.operation.resources.some(isOneOf(resources)));
    const [waiter] = rivals;
    if (rivals.length !== 1 || !waiter || waiter.node === released.node) return;
    const { askedAt, operation } = waiter;
    const isKnown = schedule.servers.every((server) => server.isKnown);
    // A process may ask before it has opened its connections.
    const asksFrom = Math.max(askedAt, schedule.processes[operation.process]?.startsAt ?? 0);
    const isListening = scheduler.now - asksFrom > LISTENS_WITHIN && (isKnown || asksFrom > NEW_MASTERS_VOTE_WITHIN);
    if (!isListening || operation.resources.length > 1 || askedAt + operation.wait < scheduler.now + WOKEN_WITHIN)
      return;
    if (this.backsOff(waiter, resources[0] as string)) return;
    scheduler.after(WOKEN_WITHIN, () => {
      const others = actors.filter((other) => other !== waiter && other.operation.resources.some(isOneOf(resources)));
      if (!waiter.isWaiting || others.some((other) => other.askedAt > askedAt && other.askedAt < Infinity)) return;
      const message = `${waiter.name} still waits ${WOKEN_WITHIN} ms after the release by ${released.name}`;
      this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
    });
  }

  private noteStray(resource: string, node: SimNode): void {
    const owner = this.homeOf(resource, node)?.get(node.redlock['keyspace'].keyOf(resource));
    if (owner === undefined || !this.world.beliefs.hasToken(owner)) {
      this.strayedAt.set(resource, this.world.scheduler.now);
    }
  }

  /** Whether a process has left the queue because the home master granted what others held a moment ago. */
  private backsOff({ node }: Actor, resource: string): boolean {
    const strayed = this.strayedAt.get(resource) ?? -Infinity;
    if (this.world.scheduler.now - strayed >= BACK_OFF) return false;
    const [queue = ''] = node.redlock['keyspace'].namesOf([resource]).queues;
    return !this.homeOf(resource, node)?.hasMember(queue, node.redlock['acquisitionContext'].listener);
  }

  /** The data of the home master of a resource. */
  private homeOf(resource: string, { redlock }: SimNode): Database | undefined {
    const home = redlock['homeMasters'].of(redlock['keyspace'].keyOf(resource))?.name;
    return this.world.endpoints.find(({ name }) => name === home)?.server?.data;
  }

  noteGrant({ operation }: Actor): void {
    for (const resource of operation.resources) this.woken.delete(resource);
  }

  /** A waiting process receives a notification for a key. Only one process may, until it has the lock or gives it up. */
  noteNotification(process: string, key: string): void {
    const { actors, schedule, scheduler } = this.world;
    if (key.includes(NUL)) return;
    const resource = key.slice(key.lastIndexOf(':') + 1);
    const woken = this.woken.get(resource);
    if (!woken || schedule.operations.some(({ abortAfter }) => abortAfter !== undefined)) return;
    // While new masters begin to vote, processes learn of it at different times, and may queue on different masters.
    const areNew = schedule.servers.some(({ isKnown }) => !isKnown);
    if (areNew && scheduler.now < NEW_MASTERS_VOTE_WITHIN + LISTENS_WITHIN) return;
    woken.add(process);
    // Processes that want several resources wait for one of them at a time.
    const isOdd = actors.some(({ hasFailed, isWaiting, operation }) =>
      isWaiting ? operation.resources.length > 1 : hasFailed,
    );
    if (woken.size < 2 || isOdd) return;
    const message = `${woken.size} processes are woken for one release of ${resource}`;
    this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
  }

  /** When something last happened to a master, in true time. */
  private lastCause(master: string): number {
    const { schedule, scheduler, endpoints } = this.world;
    const index = endpoints.findIndex(({ name }) => name === master);
    const twins = schedule.faults.filter((fault) => fault.kind === 'twin' && fault.other === index);
    // Another address may lead to the server.
    const isThrough = (fault: Fault): boolean =>
      twins.some((twin) => 'server' in twin && isOnServer(fault, twin.server) && fault.at <= endOfFault(twin));
    let last = 0;
    for (const fault of schedule.faults) {
      if (!isOnServer(fault, index) && !isThrough(fault)) continue;
      for (const moment of [fault.at, endOfFault(fault)]) {
        if (moment <= scheduler.now) last = Math.max(last, moment);
      }
    }
    return last;
  }

  private get isSimple(): boolean {
    const { faults } = this.world.schedule;
    return faults.filter((fault) => 'server' in fault || fault.kind === 'loseAll').length <= 1;
  }
}

function isOneOf(names: readonly string[]): (name: string) => boolean {
  return (name) => names.includes(name);
}

function isOnServer(fault: Fault, index: number): boolean {
  if (fault.kind === 'halfOpen') return fault.servers.includes(index);
  return fault.kind === 'loseAll' || ('server' in fault && fault.server === index);
}

function isOnOther(fault: Fault, index: number): boolean {
  return 'process' in fault && !('server' in fault) && fault.process !== index;
}
