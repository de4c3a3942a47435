import { Keyspace } from '../../../lib/core/keyspace.js';
import { quorumOf } from '../../../lib/core/acquire/quorum-call.js';
import { StateUncertainError } from '../../../lib/core/state/lock-state.js';
import { entryFrom, type StoredValue } from '../../../lib/core/state/state-entry.js';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import type { FaultKind } from '../schedule.js';
import { ON_CLIENTS } from '../assumptions.js';
import { Violation } from './violation.js';

/** Losses that a restart guard cannot see. Afterwards, nothing is promised of a state. */
const UNSEEN =
  /no restart guard|snapshot|said to be durable|while it was recognized|its backlog ended|of another (master|installation)/;
const NO_VALUE = 0;
/** Losses of data that break connections, so that each process notices them before new masters count as the first. */
const NOTICED = ['crash', 'loseAll', 'lateBoot'] as const satisfies readonly FaultKind[];
/** Time after which a process knows all masters, unless new ones have to wait, in milliseconds. */
const CONNECTED_WITHIN = 200;
/** A quarter of this many one-way trips over the network is more than a healthy process needs for an answer. */
const ROUND_TRIPS = 8;

/** One holder of the lock of a resource, as far as it uses the state. Times are true times. */
export interface HolderOfState {
  readonly name: string;
  readonly resource: string;
  /** When it began to open the state, and when its first operation succeeded. */
  began: number;
  opened: number;
  /** The value that it read before it set any, and when. */
  read: { readonly value: number; readonly at: number } | undefined;
  hasSet: boolean;
  /** Whether its lock lasts for another round trip. */
  holdsStill: () => boolean;
}

/** A value, with the operations that set or read it. */
interface Known {
  readonly value: number;
  /** When the first of these operations ended, and when the last one began. */
  ended: number;
  began: number;
}

/** What is known of the state of one resource. */
interface History {
  readonly values: Map<number, Known>;
  readonly holders: HolderOfState[];
  /** The holder that set each value. */
  readonly writers: Map<number, HolderOfState>;
  readonly acknowledged: Set<number>;
  /** Masters that have lost the entry, with the generation of the data that they lost. */
  readonly lost: Map<Endpoint, string>;
  /**
   * Whether all masters have lost it, as after a new installation, and nothing was written to all of them since. Data that
   * is kept, and looks new to a guard, counts as lost.
   */
  isGone: boolean;
  /** When the first master lost its data. */
  firstLoss: number;
}

/**
 * The state of a resource is a register that each holder reads and sets. Its values grow, so each is known by its number.
 *
 * Every set that was acknowledged, and every other one that was read, takes effect at one moment between its beginning and
 * the end of the first operation that saw it, whatever clocks and leases do. Values have an order then: one is older if
 * an operation on it ended before an operation on the other began. That no two values are older than each other means that
 * a get returns the last value that was set, or a later one of unknown result, and nothing older afterwards.
 *
 * However many masters lose the value, a get fails rather than that it returns an older one. Only after all masters have lost
 * it, which looks like a new installation, the promise begins anew with the first value that all of them have.
 */
export class States {
  private readonly histories = new Map<string, History>();
  private readonly keyspace: Keyspace;
  /** Masters whose data was ever lost, or looked so. */
  private readonly everLost = new Set<Endpoint>();
  private counter = NO_VALUE;
  private isUnseen = false;

  constructor(private readonly world: World) {
    this.keyspace = new Keyspace(world.settings.keyPrefix);
    for (const { resources } of world.schedule.operations) resources.forEach((resource) => this.historyOf(resource));
  }

  holder(name: string, resource: string): HolderOfState {
    const holder = {
      name,
      ...{ resource, began: Infinity, opened: Infinity, read: undefined, hasSet: false },
      holdsStill: () => true,
    };
    this.historyOf(resource).holders.push(holder);
    return holder;
  }

  /** Notes that a holder begins to read. Returns what to call with the value. */
  get(holder: HolderOfState): (value: number | undefined) => void {
    const began = this.now;
    holder.began = Math.min(holder.began, began);
    return (value = NO_VALUE) => {
      const history = this.historyOf(holder.resource);
      holder.opened = Math.min(holder.opened, this.now);
      if (!holder.hasSet) holder.read ??= { value, at: this.now };
      const writer = history.writers.get(value);
      if (writer && writer !== holder) {
        const isUnknown = !history.acknowledged.has(value) && !history.values.has(value);
        if (isUnknown) this.world.sometimes.reached('a set of unknown result was read by a later holder');
        this.world.sometimes.reached('the value of a state was written again under another ballot');
      }
      this.note(history, { value, began, ended: this.now }, holder);
    };
  }

  /** Notes that a holder begins to set a new value. Returns it, and what to call when it is acknowledged. */
  set(holder: HolderOfState): { readonly value: number; readonly acknowledged: () => void } {
    const began = this.now;
    const value = ++this.counter;
    const history = this.historyOf(holder.resource);
    holder.began = Math.min(holder.began, began);
    holder.hasSet = true;
    history.writers.set(value, holder);
    const acknowledged = (): void => {
      holder.opened = Math.min(holder.opened, this.now);
      history.acknowledged.add(value);
      this.note(history, { value, began, ended: this.now }, holder);
      if (this.isPromised(history)) this.checkLaterHolders(history, holder, value);
    };
    return { value, acknowledged };
  }

  /** Checks that an operation failed for a reason. */
  failed(holder: HolderOfState, node: SimNode, error: unknown): void {
    const { assumptions, schedule, sometimes, endpoints } = this.world;
    const isUncertain = error instanceof StateUncertainError;
    if (isUncertain) sometimes.reached('a state was uncertain');
    if (!schedule.servers.every(({ isKnown }) => isKnown)) return;
    const isExcused = this.everLost.size > endpoints.length - quorumOf(endpoints.length) || this.isBeyondSight;
    if (isUncertain && !isExcused) {
      this.fail(`${holder.name} finds the state of ${holder.resource} uncertain, and a quorum has never lost data`);
    }
    // The first replica renames the history of a master, and a write of a state is not sent again.
    const isRenamed = schedule.faults.some(({ kind }) => kind === 'attachReplica');
    const isFast = node.settings.masterTimeout > ROUND_TRIPS * schedule.latency;
    if (!isRenamed && isFast && assumptions.isHealthy(node) && holder.holdsStill()) {
      this.fail(
        `${holder.name} cannot use the state of ${holder.resource}, and the masters are fine: ${String(error)}`,
      );
    }
  }

  /** To be called before the data of a server is lost, or looks so to a guard. */
  lose(server: SimServer | undefined): void {
    if (!server) return;
    const generation = server.data.hget(this.keyspace.marker, 'generation') ?? '';
    for (const endpoint of this.addressesOf(server)) {
      this.everLost.add(endpoint);
      for (const [resource, history] of this.histories) {
        history.firstLoss = Math.min(history.firstLoss, this.now);
        this.forgetRewritten(resource, history);
        history.lost.set(endpoint, generation);
        if (history.lost.size === this.world.endpoints.length) history.isGone = true;
      }
    }
  }

  /** Notes that one key was dropped, which no guard can see. */
  evicted(key: string): void {
    if (key.includes(this.keyspace.stateOf('')) || key === this.keyspace.marker) this.isUnseen = true;
  }

  private note(history: History, { value, began, ended }: Known, holder: HolderOfState): void {
    if (history.isGone) {
      if (value === NO_VALUE && history.acknowledged.size > 0 && this.hasWitness(history))
        this.fail(
          `${holder.name} finds no state of ${holder.resource}, and a process lives that knew the masters before`,
        );
      if (!this.isOnAllMasters(holder.resource, value)) return;
      history.isGone = false;
      history.lost.clear();
      history.values.clear();
    }
    const known = history.values.get(value) ?? { value, ended: Infinity, began: -Infinity };
    history.values.set(value, known);
    known.ended = Math.min(known.ended, ended);
    known.began = Math.max(known.began, began);
    if (!this.isPromised(history)) return;
    for (const other of history.values.values()) {
      if (other === known || other.ended >= known.began || known.ended >= other.began) continue;
      this.fail(
        `${holder.name} met ${show(value)} in the state of ${holder.resource}, ` +
          `which is both older and newer than ${show(other.value)}`,
      );
    }
  }

  /** A holder that opened the state after an older one, and read it before the set of that one ended, has read that value. */
  private checkLaterHolders(history: History, holder: HolderOfState, value: number): void {
    for (const later of history.holders) {
      const { read } = later;
      if (later === holder || !read || later.began <= holder.opened || read.at >= this.now) continue;
      if (read.value === value) continue;
      const writer = history.writers.get(read.value);
      if (writer && writer !== holder && writer.opened >= holder.began) continue;
      this.fail(
        `${holder.name} has set ${value} after ${later.name} had opened the state of ${holder.resource} and read ${show(read.value)}`,
      );
    }
  }

  private get isBeyondSight(): boolean {
    const { broken } = this.world.assumptions;
    return this.isUnseen || (broken.size > 0 && [...broken].some((assumption) => UNSEEN.test(assumption)));
  }

  private isPromised(history: History): boolean {
    return !history.isGone && !this.isBeyondSight;
  }

  /**
   * Whether a process that nothing disturbs has lived since before the first loss. Data that is lost over connections that
   * survive is noticed too late by an idle process.
   */
  private hasWitness({ firstLoss }: History): boolean {
    const { schedule, assumptions, nodes, settings } = this.world;
    const isNoticed = schedule.faults.every(
      ({ kind }) => ON_CLIENTS.includes(kind) || (NOTICED as readonly string[]).includes(kind),
    );
    return (
      isNoticed &&
      settings.restartGuard &&
      assumptions.ratesAreNormal &&
      nodes.some(
        (node) =>
          node.isThere && !assumptions.mayBeSick(node) && this.startOf(node.index) + CONNECTED_WITHIN < firstLoss,
      )
    );
  }

  private startOf(index: number): number {
    return this.world.schedule.processes[index]?.startsAt ?? Infinity;
  }

  private forgetRewritten(resource: string, { lost }: History): void {
    for (const [endpoint, generation] of lost) {
      const stored = this.currentOn(endpoint, resource);
      if (stored && stored.generation !== generation) lost.delete(endpoint);
    }
  }

  private isOnAllMasters(resource: string, value: number): boolean {
    const json = value === NO_VALUE ? '' : String(value);
    return this.world.endpoints.every((endpoint) => this.currentOn(endpoint, resource)?.json === json);
  }

  /** What a server has stored since it last lost data, as far as it knows. */
  private currentOn({ server }: Endpoint, resource: string): StoredValue | undefined {
    const stored = entryFrom(server?.data.get(this.keyspace.stateOf(resource)) ?? '')?.stored;
    const generation = server?.data.hget(this.keyspace.marker, 'generation') ?? '';
    return stored?.generation === generation ? stored : undefined;
  }

  private historyOf(resource: string): History {
    const history = this.histories.get(resource) ?? {
      values: new Map<number, Known>([[NO_VALUE, { value: NO_VALUE, ended: -Infinity, began: -Infinity }]]),
      ...{ holders: [], writers: new Map(), acknowledged: new Set<number>(), lost: new Map(), isGone: false },
      ...{ firstLoss: Infinity },
    };
    this.histories.set(resource, history);
    return history;
  }

  private addressesOf(server: SimServer): readonly Endpoint[] {
    return this.world.endpoints.filter((endpoint) => endpoint.server === server || endpoint.own?.server === server);
  }

  private get now(): number {
    return this.world.scheduler.now;
  }

  private fail(message: string): never {
    throw new Violation('the state of a lock', this.now, message);
  }
}

function show(value: number): string {
  return value === NO_VALUE ? 'nothing' : String(value);
}
