import { Keyspace } from '../../../lib/settings/keyspace.js';
import { quorumOf } from '../../../lib/redlock/quorum.js';
import { entryFrom, type StoredValue } from '../../../lib/fencing/state-entry.js';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Losses that a restart guard cannot see. Afterwards, nothing is promised of a state. */
const UNSEEN = /no restart guard|outlived the server/;
const NO_VALUE = 0;
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

interface Known {
  readonly value: number;
  /** When the first of these operations ended, and when the last one began. */
  ended: number;
  began: number;
}

interface History {
  readonly values: Map<number, Known>;
  readonly holders: HolderOfState[];
  /** The holder that set each value. */
  readonly writers: Map<number, HolderOfState>;
  readonly acknowledged: Set<number>;
  /** Masters that have lost the entry since it was last known to be on a majority: what their data was, and when. */
  readonly lost: Map<Endpoint, { readonly marker: string; readonly at: number }>;
  /** When a majority of masters had lost it last, and whether no operation that began later has succeeded. */
  goneAt: number;
  isGone: boolean;
}

/**
 * The state of a resource is a register that each holder reads and sets. Its values grow, so each is known by its number.
 *
 * Every set that was acknowledged, and every other one that was read, takes effect at one moment between its beginning and
 * the end of the first operation that saw it, whatever clocks and leases do. Values have an order then: one is older if
 * an operation on it ended before an operation on the other began. That no two values are older than each other means that
 * a get returns the last value that was set, or a later one of unknown result, and nothing older afterwards.
 *
 * Once a majority of masters has lost the value, the promise begins anew with the first operation that succeeds: it has
 * written what it gives to a majority.
 */
export class States {
  private readonly histories = new Map<string, History>();
  private readonly keyspace: Keyspace;
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
        this.world.sometimes.reached('the value of a state was written again by another holder');
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
    const { assumptions, schedule, endpoints, settings } = this.world;
    if (!schedule.servers.every(({ isKnown }) => isKnown)) return;
    // Otherwise, all masters are needed, and another process may have a key on one of them.
    const counted = endpoints.filter((endpoint) => this.currentOn(endpoint, holder.resource)).length;
    if (settings.restartGuard && counted < quorumOf(endpoints.length)) return;
    const isFast = node.settings.masterTimeout > ROUND_TRIPS * schedule.latency;
    if (isFast && assumptions.isHealthy(node) && holder.holdsStill()) {
      this.fail(
        `${holder.name} cannot use the state of ${holder.resource}, and the masters are fine: ${String(error)}`,
      );
    }
  }

  /** To be called before the data of a server is lost, or looks so to a guard. */
  lose(server: SimServer | undefined): void {
    if (!server) return;
    const marker = server.data.hget(this.keyspace.marker, 'from') ?? '';
    const { endpoints, sometimes } = this.world;
    for (const endpoint of this.addressesOf(server)) {
      for (const [resource, history] of this.histories) {
        this.forgetRewritten(resource, history);
        history.lost.set(endpoint, { marker, at: this.now });
        if (history.lost.size <= endpoints.length - quorumOf(endpoints.length)) continue;
        history.goneAt = this.now;
        history.isGone = true;
        sometimes.reached('a majority of masters lost a state');
      }
    }
  }

  /** Notes that one key was dropped, which no guard can see. */
  evicted(key: string): void {
    if (key.includes(this.keyspace.stateOf('')) || key === this.keyspace.marker) this.isUnseen = true;
  }

  private note(history: History, { value, began, ended }: Known, holder: HolderOfState): void {
    if (began <= history.goneAt) return;
    if (history.isGone) history.values.clear();
    history.isGone = false;
    // It has written the value to a majority.
    for (const [endpoint, { at }] of history.lost) if (at < began) history.lost.delete(endpoint);
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

  private forgetRewritten(resource: string, { lost }: History): void {
    for (const [endpoint, { marker }] of lost) {
      const stored = this.currentOn(endpoint, resource);
      if (stored && stored.marker !== marker) lost.delete(endpoint);
    }
  }

  /** What a server has stored since it last lost data, as far as it knows. */
  private currentOn({ server }: Endpoint, resource: string): StoredValue | undefined {
    const stored = entryFrom(server?.data.get(this.keyspace.stateOf(resource)) ?? '')?.stored;
    const marker = server?.data.hget(this.keyspace.marker, 'from') ?? '';
    return stored?.marker === marker ? stored : undefined;
  }

  private historyOf(resource: string): History {
    const history = this.histories.get(resource) ?? {
      values: new Map<number, Known>([[NO_VALUE, { value: NO_VALUE, ended: -Infinity, began: -Infinity }]]),
      ...{
        holders: [],
        writers: new Map(),
        acknowledged: new Set<number>(),
        lost: new Map(),
        goneAt: -Infinity,
        isGone: false,
      },
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
