import { validityOf } from '../../lib/redlock/validity.js';
import { Keyspace } from '../../lib/settings/keyspace.js';
import type { Chance } from './engine/chance.js';
import type { Connection } from './network/connection.js';
import type { Endpoint, Place } from './network/endpoint.js';
import type { Direction } from './network/link.js';
import type { SimNode } from './node.js';
import { isLockKey } from './lock-keys.js';
import { TOLD_IN_TRUE_TIME } from './properties/beliefs.js';
import { endOfFault, type Fault, type LinkFault, type ProcessFault, type ServerFault } from './schedule.js';
import { type Remains, runId, type ServerPlan, SimServer } from './server/sim-server.js';
import type { World } from './world.js';

/** Suffix of the hash of fencing counters. */
const COUNTERS = '\0fences';
/** How long a spare has run, in milliseconds. */
const LONG = 3_600_000;
/** A message that arrives later than this is rare, in milliseconds. */
const LONG_DELAY = 1_000;

interface Hit<F extends Fault = ServerFault> {
  readonly fault: F;
  readonly endpoint: Endpoint;
  readonly server: SimServer;
  /** The older state that a disk or a copy has. */
  readonly remains: Remains;
}

interface Outage {
  readonly down: number;
  /** For how long the server has no memory for writes when it is back. */
  readonly full?: number;
}

export class FaultInjector {
  private readonly incarnations: number[];

  constructor(
    private readonly world: World,
    private readonly chance: Chance,
  ) {
    this.incarnations = world.endpoints.map(() => 0);
  }

  plan(fault: Fault): void {
    const { scheduler } = this.world;
    let remains: Remains | undefined;
    // The file on disk or the copy stops being updated at this point, and will be outdated when the fault happens.
    if ('lag' in fault) {
      const remember = (): void => {
        remains = this.endpointOf(fault)?.server?.data.copy() ?? remains;
      };
      scheduler.at(Math.max(0, fault.at - fault.lag), remember);
    }
    scheduler.at(fault.at, () => this.inflict(fault, remains ?? new Map()));
  }

  private inflict(fault: Fault, remains: Remains): void {
    const { world } = this;
    if (fault.kind === 'loseAll') {
      this.note(fault);
      world.sometimes.reached('all masters lost their data');
      for (const endpoint of world.endpoints) {
        world.scheduler.after(this.chance.fraction() * fault.within, () => this.restart(endpoint, fault, {}));
      }
    } else if ('server' in fault) {
      this.inflictOnServer(fault, remains);
    } else {
      this.note(fault);
      this.hitProcess(fault, world.nodes[fault.process] as SimNode);
    }
    world.noteClocks();
  }

  private inflictOnServer(fault: ServerFault | LinkFault, remains: Remains): void {
    const { world } = this;
    const endpoint = this.endpointOf(fault) as Endpoint;
    if ('process' in fault) {
      this.note(fault, endpoint);
      this.hitLink(fault, world.nodes[fault.process] as SimNode, endpoint);
      return;
    }
    const { server } = endpoint;
    if (!server) {
      // The clock of a machine can be set while no server runs on it.
      if (fault.kind === 'serverJump') this.setClock(fault, endpoint);
      return;
    }
    const hit = { fault, endpoint, server, remains };
    if (fault.kind === 'evict') this.evict({ ...hit, fault });
    else if (fault.kind === 'twin') this.lead({ ...hit, fault });
    else if (fault.kind === 'serverJump') this.setClock(fault, endpoint);
    else {
      this.note(fault, endpoint);
      this.hitServer(hit);
    }
  }

  private note(fault: Fault, endpoint?: Endpoint, more = {}): void {
    const { world } = this;
    world.inflicted.push(fault.kind);
    if (!('process' in fault)) world.beliefs.noteFault();
    world.assumptions.note(fault);
    world.trace('fault', () => JSON.stringify({ ...fault, ...more }));
  }

  private hitProcess(fault: ProcessFault, node: SimNode): void {
    const { world } = this;
    // An empty event lets the checks see a late report of a loss even if nothing else happens.
    world.scheduler.at(endOfFault(fault) + TOLD_IN_TRUE_TIME * 1.1, () => undefined);
    switch (fault.kind) {
      case 'pause':
      case 'suspend':
      case 'stun':
        node.process.pause(fault.lasts, fault.kind);
        return;
      case 'slew':
        node.process.slew(fault.lasts, 1 - fault.by);
        world.scheduler.after(fault.lasts, () => world.noteClocks());
        return;
      case 'stumble':
        node.process.stumble(fault.by, fault.lasts);
        return;
      case 'halfOpen':
        for (const server of fault.servers) {
          for (const connection of this.connectionsOf(node, world.endpoints[server]))
            connection.fallSilent(() => world.sometimes.reached('a half-open connection was replaced'));
        }
        return;
      case 'wallJump':
        node.process.clocks.step(fault.by);
        node.process.noteClocks();
        return;
      case 'leave':
        node.process.receive(() => {
          if (node.isThere) node.leave().catch((error: unknown) => world.report(error));
        });
        this.nothingIsSureToBeReleased();
        return;
      case 'die':
        node.die();
        this.nothingIsSureToBeReleased();
    }
  }

  private nothingIsSureToBeReleased(): void {
    for (const endpoint of this.world.endpoints) endpoint.mayKeepKeys = true;
  }

  private hitLink(fault: LinkFault, node: SimNode, endpoint: Endpoint): void {
    const link = node.links[endpoint.index];
    if (!link) return;
    switch (fault.kind) {
      case 'partition':
        for (const direction of directionsOf(fault)) link.block(direction, fault.lasts);
        return;
      case 'cut':
        for (const connection of this.connectionsOf(node, endpoint)) connection.break(fault.cut);
        return;
      case 'late':
        for (const connection of this.connectionsOf(node, endpoint)) {
          for (const direction of directionsOf(fault)) connection.delay(direction, fault.lasts);
          this.world.scheduler.after(fault.lasts, () => {
            if (fault.lasts > LONG_DELAY && connection.isBusy)
              this.world.sometimes.reached('a message arrived more than a second late');
          });
        }
        return;
      case 'orphan':
        for (const connection of this.connectionsOf(node, endpoint)) {
          connection.orphan(fault.lasts, () => this.world.sometimes.reached('a request outlived its connection'));
        }
        return;
      case 'slow': {
        const { latency } = link;
        link.latency = { least: fault.least ?? 0.1, most: fault.latency };
        this.world.scheduler.after(fault.lasts, () => (link.latency = latency));
        return;
      }
    }
  }

  private connectionsOf({ process }: SimNode, endpoint: Endpoint | undefined): readonly Connection[] {
    return [...(endpoint?.connections ?? [])].filter(({ processName }) => processName === process.name);
  }

  private hitServer(hit: Hit): void {
    const { fault, endpoint, server, remains } = hit;
    const { scheduler } = this.world;
    switch (fault.kind) {
      case 'crash':
        this.world.states.lose(server);
        if (fault.data === 'kept') this.restartWith(endpoint, fault, { remains: server.data.copy() });
        else this.restart(endpoint, fault, fault.data === 'stale' ? { remains } : {});
        return;
      case 'spare':
        this.replace({ ...hit, fault }, { uptime: LONG, ...(fault.data === 'stale' && { remains }) });
        // The server that was there before may go on at another address, by the same clock.
        if (!this.world.endpoints.some((other) => other.server === server)) endpoint.clock.step(fault.ahead ?? 0);
        return;
      case 'flush':
        this.lose(endpoint);
        server.data.clear();
        server.askedAt = undefined;
        return;
      case 'unmark':
        this.world.states.lose(server);
        server.data.forget(new Keyspace(this.world.settings.keyPrefix).marker);
        server.askedAt = undefined;
        return;
      case 'scriptFlush':
        server.scripts.clear();
        return;
      case 'oom':
        server.data.isFull = true;
        scheduler.after(fault.lasts, () => (server.data.isFull = false));
        return;
      case 'readonly':
        this.world.states.lose(server);
        server.demote();
        endpoint.mayKeepKeys = true;
        scheduler.after(fault.lasts, () => server.promote());
        return;
      case 'hang':
        endpoint.pause(fault.lasts);
        return;
      // These faults need more information before they happen, so other methods handle them.
      case 'evict':
      case 'twin':
      case 'serverJump':
    }
  }

  private setClock(fault: Extract<Fault, { kind: 'serverJump' }>, endpoint: Endpoint): void {
    this.note(fault, endpoint);
    // Expired keys are gone by then, because servers check expiry continuously.
    if (fault.by > 0 && !this.world.assumptions.isHarmless(fault.by)) this.noteLoss(endpoint.own ?? endpoint);
    // Keys that `minHold` retains live longer.
    else endpoint.mayKeepKeys = true;
    endpoint.clock.step(fault.by);
  }

  /** Usually deletes the key of a lock, and sometimes an internal key. */
  private evict({ fault, endpoint, server }: Hit): void {
    const { world, chance } = this;
    const keys = server.data.keys();
    const locks = keys.filter(isLockKey);
    const victim = chance.pick(chance.happens(0.8) ? locks : keys) as string | undefined;
    if (victim === undefined) return;
    this.note(fault, endpoint, { victim });
    this.noteLoss(endpoint);
    server.data.forget(victim);
    if (server.data.hget(new Keyspace(world.settings.keyPrefix).marker, 'from') === undefined)
      server.askedAt = undefined;
    world.states.evicted(victim);
    if (victim.endsWith(COUNTERS)) world.tokens.loseCounters('unguarded');
  }

  /** Points the address to another master's server, and later back. */
  private lead({ fault, endpoint, server }: Hit<Extract<Fault, { kind: 'twin' }>>): void {
    const { server: other, losses } = this.world.endpoints[fault.other] ?? {};
    if (!other || !losses || other === server) return;
    this.note(fault, endpoint);
    this.turn(endpoint, { server: other, losses }, fault.lasts);
  }

  /** Lets the address lead to another place, and back after so many milliseconds. */
  private turn(endpoint: Endpoint, place: Place, lasts: number): void {
    const { scheduler } = this.world;
    const turn = (to: Place): void => {
      for (const connection of [...endpoint.connections]) connection.reset(0);
      endpoint.server = to.server;
      endpoint.losses = to.losses;
      endpoint.movedAt = scheduler.now;
    };
    const before: Place = { server: endpoint.server, losses: endpoint.losses };
    this.nothingIsSureToBeReleased();
    endpoint.own ??= before;
    turn(place);
    scheduler.after(lasts, () => {
      if (endpoint.own !== before) return;
      turn(before);
      endpoint.own = undefined;
    });
  }

  /** Lets another server answer at the address from now on. */
  private replace({ fault, endpoint }: Hit<Extract<Fault, { kind: 'spare' }>>, plan: Partial<ServerPlan>): void {
    const { own } = endpoint;
    // What happens to the server behind the other addresses is no loss of this one from now on.
    endpoint.losses = { ...endpoint.losses };
    this.lose(endpoint);
    // The address does not lead back to the server that was there before.
    if (own) this.noteLoss({ server: own.server, losses: endpoint.losses });
    endpoint.own = undefined;
    // At other addresses, the server goes on.
    if (fault.connections === 'broken') endpoint.stop();
    endpoint.server = new SimServer(this.nextRun(endpoint), this.planOf(endpoint, plan));
    endpoint.mayKeepKeys = true;
  }

  /** Like {@link restartWith}, for a restart that loses acknowledged data. */
  private restart(endpoint: Endpoint, outage: Outage, plan: Partial<ServerPlan>): void {
    this.lose(endpoint);
    this.restartWith(endpoint, outage, plan);
  }

  private restartWith(endpoint: Endpoint, { down, full }: Outage, plan: Partial<ServerPlan>): void {
    const { server } = endpoint;
    const addresses = server ? this.stop(server) : [endpoint];
    const machine = addresses.find(({ own }) => own === undefined) ?? endpoint;
    this.world.scheduler.after(down, () => {
      const vacant = addresses.filter((address) => address.server === undefined);
      if (vacant.length === 0) return;
      const restarted = new SimServer(this.nextRun(machine), this.planOf(machine, plan));
      for (const address of vacant) address.server = restarted;
      if (full === undefined) return;
      restarted.data.isFull = true;
      this.world.scheduler.after(full, () => (restarted.data.isFull = false));
    });
  }

  /** Stops a server. Returns all addresses that led to it. */
  private stop(server: SimServer): readonly Endpoint[] {
    const addresses = this.world.endpoints.filter((endpoint) => endpoint.server === server);
    for (const address of addresses) address.stop();
    return addresses;
  }

  private planOf(endpoint: Endpoint, plan: Partial<ServerPlan>): ServerPlan {
    return { ...this.world.serverPlan(endpoint.clock), ...plan };
  }

  /** From now on, anything that the server acknowledged may be forgotten. */
  private lose(endpoint: Endpoint): void {
    const { assumptions, tokens, settings } = this.world;
    this.noteLoss(endpoint);
    this.world.states.lose(endpoint.server);
    tokens.loseCounters(settings.restartGuard && assumptions.broken.size === 0 ? 'guarded' : 'unguarded');
  }

  /** Records for how long holders could still rely on the locks that a server is about to lose. */
  private noteLoss({ server, losses }: Place): void {
    const { scheduler, health, settings, schedule } = this.world;
    const { now } = scheduler;
    losses.at = now;
    if (!server) return;
    const left = server.data
      .keys()
      .filter(isLockKey)
      .map((key) => server.data.pttl(key));
    if (left.length === 0) return;
    // After a clock was set back, keys live longer than any lock.
    const life = Math.min(health.longestUsedTtl, Math.max(...left));
    // By the slowest clock of a holder, which gives up the drift.
    const slowest = Math.min(...schedule.processes.map(({ rate }) => rate));
    losses.lockUntil = Math.max(losses.lockUntil, now + validityOf(settings, life) / slowest);
  }

  private nextRun(endpoint: Endpoint): string {
    const next = (this.incarnations[endpoint.index] ?? 0) + 1;
    this.incarnations[endpoint.index] = next;
    return runId(endpoint.index, next);
  }

  private endpointOf(fault: Fault): Endpoint | undefined {
    return 'server' in fault ? this.world.endpoints[fault.server] : undefined;
  }
}

function directionsOf({ direction }: Extract<LinkFault, { kind: 'partition' | 'late' }>): readonly Direction[] {
  return direction === 'both' ? ['out', 'in'] : [direction];
}
