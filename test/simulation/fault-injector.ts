import { Keyspace } from '../../lib/core/keyspace.js';
import type { Chance } from './engine/chance.js';
import { MachineClock } from './engine/machine-clock.js';
import type { Connection } from './network/connection.js';
import type { Endpoint, Place } from './network/endpoint.js';
import type { Direction } from './network/link.js';
import type { SimNode } from './node.js';
import { isLockKey } from './lock-keys.js';
import { HEARD_WITHIN, TOLD_IN_TRUE_TIME } from './properties/beliefs.js';
import { endOfFault, type Fault, type LinkFault, type ProcessFault, type ServerFault } from './schedule.js';
import { type Remains, runId, type ServerPlan, SimServer } from './server/sim-server.js';
import type { World } from './world.js';

/** Suffix of the hash of fencing counters. */
const COUNTERS = '\0fences';
/** How long a spare has run, and the largest error of a clock at boot, in milliseconds. */
const LONG = 3_600_000;
/** How long an address that is led to and fro leads to one server, in milliseconds. */
const STAYS = [0.3, 1, 2, 5, 50, 300];
/** A message that arrives later than this is rare, in milliseconds. */
const LONG_DELAY = 1_000;

/** A fault on a server, with the place where it happens. */
interface Hit<F extends Fault = ServerFault> {
  readonly fault: F;
  readonly endpoint: Endpoint;
  readonly server: SimServer;
  /** The older state that a disk, a replica or a snapshot has. */
  readonly remains: Remains;
}

/** Injects the faults of a schedule. */
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
    // The file on disk or the replica stops being updated at this point, and will be outdated when the fault happens.
    if ('lag' in fault) {
      const remember = (): void => {
        const server = this.endpointOf(fault)?.server;
        remains = server?.data.copy() ?? remains;
        if (server && 'isFileOff' in fault) server.syncsAlways = false;
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
        world.scheduler.after(this.chance.fraction() * fault.within, () => this.restart(endpoint, fault.down, {}));
      }
    } else if (fault.kind === 'storm') {
      this.note(fault);
      this.announceBeforeRequests(fault);
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
      if (fault.kind === 'serverJump' || fault.kind === 'smallStep') this.setClock(fault, endpoint);
      return;
    }
    const hit = { fault, endpoint, server, remains };
    if (fault.kind === 'evict') this.evict({ ...hit, fault });
    else if (fault.kind === 'twin') this.lead({ ...hit, fault });
    else if (fault.kind === 'detour') this.leadElsewhere({ ...hit, fault });
    else if (fault.kind === 'serverJump' || fault.kind === 'smallStep') this.setClock(fault, endpoint);
    else {
      this.note(fault, endpoint);
      this.hitServer(hit);
    }
  }

  private note(fault: Fault, endpoint?: Endpoint, more = {}): void {
    const { world } = this;
    world.inflicted.push(fault.kind);
    for (const each of world.endpoints) {
      // Several addresses may lead to the server.
      const isHit = each === endpoint || (endpoint?.server !== undefined && each.server === endpoint.server);
      if (isHit || fault.kind === 'loseAll') each.mayBeYoung = true;
    }
    world.assumptions.note(fault, endpoint, world.nodes);
    world.trace('fault', () => JSON.stringify({ ...fault, ...more }));
  }

  private hitProcess(fault: ProcessFault, node: SimNode): void {
    const { world } = this;
    // These empty events let the checks see a late report of a loss even if nothing else happens.
    for (const within of [TOLD_IN_TRUE_TIME, HEARD_WITHIN]) {
      world.scheduler.at(endOfFault(fault) + within * 1.1, () => undefined);
    }
    switch (fault.kind) {
      case 'pause':
      case 'suspend':
        node.process.pause(fault.lasts, fault.kind);
        return;
      case 'clientLag':
        this.standStill(fault, node);
        if (fault.breaks) this.disconnect(node);
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

  private standStill({ lasts, turns }: Extract<Fault, { kind: 'clientLag' }>, { process }: SimNode): void {
    const { world } = this;
    const { scheduler } = world;
    const noteEnd = (): void => void scheduler.after(lasts, () => world.noteClocks());
    if (turns === undefined) {
      process.pause(lasts, 'stun');
      noteEnd();
      return;
    }
    const begins = (): void => {
      world.assumptions.noteBlocked(scheduler.now, lasts);
      world.trace('fault', () => `${process.name} stands still within its turn`);
      noteEnd();
    };
    process.standStillInTurn({ lasts, turnsLeft: turns, begins });
  }

  private disconnect(node: SimNode): void {
    for (const endpoint of this.world.endpoints) {
      for (const connection of this.connectionsOf(node, endpoint)) connection.reset(0);
    }
  }

  private announceBeforeRequests({ lasts, every }: Extract<Fault, { kind: 'storm' }>): void {
    const { endpoints, scheduler, settings } = this.world;
    if (!settings.restartGuard) return;
    const { marker } = new Keyspace(settings.keyPrefix);
    const last = new Map<SimServer, number>();
    const overtake = (server: SimServer): void => {
      if (scheduler.now - (last.get(server) ?? -Infinity) < every) return;
      last.set(server, scheduler.now);
      server.announceFor(marker, settings.ttl);
    };
    for (const endpoint of endpoints) endpoint.overtake = overtake;
    this.world.isStormy = true;
    scheduler.after(lasts, () => {
      // A later storm may have begun.
      if (endpoints[0]?.overtake !== overtake) return;
      for (const endpoint of endpoints) endpoint.overtake = undefined;
      this.world.isStormy = false;
    });
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
        if (fault.data === 'kept') this.restartWith(endpoint, fault.down, { remains: server.data.copy() });
        else this.restart(endpoint, fault.down, fault.data === 'stale' ? { remains } : {});
        if (fault.data === 'stale' && this.world.schedule.synced)
          this.world.sometimes.reached('masters that say that they sync each write came back with an old copy');
        if (fault.isFileOff && this.world.schedule.durable)
          this.world.sometimes.reached('a master that is said to be durable came back from a file that had been off');
        return;
      case 'durableRestart':
        if (!this.world.schedule.durable) this.world.states.lose(server);
        this.restartWith(endpoint, fault.down, { remains: server.data.copy(), durable: true });
        return;
      case 'lateBoot':
        this.restart(endpoint, fault.down, { uptime: LONG });
        return;
      case 'promote':
        this.replace(hit, { remains, promotedFrom: server.replid, uptime: LONG });
        return;
      case 'spare':
        this.replace(hit, { uptime: LONG, ...(fault.data === 'stale' && { remains }) });
        endpoint.clock.step(fault.ahead ?? 0);
        return;
      case 'failback':
        this.failBack({ ...hit, fault });
        return;
      case 'clone':
      case 'rollback':
        this.lose(endpoint);
        if (fault.kind === 'rollback') endpoint.clock.step(-fault.lag);
        server.restore(remains);
        this.breakConnections(server);
        endpoint.mayKeepKeys = true;
        return;
      case 'attachReplica':
        if (server.hasForgotten) this.world.states.lose(server);
        server.attachReplica();
        return;
      case 'flush':
        this.lose(endpoint);
        server.data.clear();
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
      case 'detour':
      case 'serverJump':
      case 'smallStep':
    }
  }

  private setClock(fault: Extract<Fault, { kind: 'serverJump' | 'smallStep' }>, endpoint: Endpoint): void {
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
    world.states.evicted(victim);
    if (victim.endsWith(COUNTERS)) world.tokens.loseCounters('unguarded');
  }

  /** Points the address to another master's server, and later back. */
  private lead({ fault, endpoint, server }: Hit<Extract<Fault, { kind: 'twin' }>>): void {
    const { server: other, losses } = this.world.endpoints[fault.other] ?? {};
    if (!other || !losses || other === server) return;
    this.note(fault, endpoint);
    this.turn(endpoint, { server: other, losses }, [fault.lasts]);
  }

  /** Points the address to a server of another installation, and later back. */
  private leadElsewhere({ fault, endpoint }: Hit<Extract<Fault, { kind: 'detour' }>>): void {
    const { scheduler, settings } = this.world;
    this.note(fault, endpoint);
    this.lose(endpoint);
    const clock = new MachineClock(scheduler, endpoint.clock.rate, endpoint.clock.error + fault.ahead);
    const stranger = new SimServer(this.nextRun(endpoint), { ...this.world.serverPlan(clock), uptime: LONG });
    const { marker } = new Keyspace(settings.keyPrefix);
    if (fault.data !== 'empty') stranger.mark(marker, settings.ttl);
    if (fault.data === 'replicated') stranger.attachReplica();
    if (fault.data === 'unreported') stranger.data.hset(marker, 'run', '');
    const place = { server: stranger, losses: { ...endpoint.losses } };
    const { connections, lasts } = fault;
    this.turn(endpoint, place, connections === 'flapping' ? this.staysIn(lasts) : [lasts], connections === 'broken');
  }

  /** How long an address leads to one of two servers, and then to the other one. */
  private staysIn(milliseconds: number): readonly number[] {
    const stays: number[] = [];
    for (let left = milliseconds; left > 0 || stays.length % 2 === 0; left -= stays.at(-1) ?? 0) {
      stays.push(this.chance.pick(STAYS));
    }
    return stays;
  }

  /** Lets the address lead to another place, and back after so many milliseconds, and to it again after so many. */
  private turn(endpoint: Endpoint, place: Place, stays: readonly number[], breaksConnections = true): void {
    const { scheduler } = this.world;
    const turn = (to: Place): void => {
      if (breaksConnections) for (const connection of [...endpoint.connections]) connection.reset(0);
      endpoint.server = to.server;
      endpoint.losses = to.losses;
      endpoint.movedAt = scheduler.now;
    };
    const before: Place = { server: endpoint.server, losses: endpoint.losses };
    this.nothingIsSureToBeReleased();
    endpoint.own ??= before;
    const next = (index: number): void => {
      const isAway = index % 2 === 0;
      turn(isAway ? place : before);
      const stay = stays[index];
      if (stay === undefined) endpoint.own = undefined;
      else scheduler.after(stay, () => endpoint.own === before && next(index + 1));
    };
    next(0);
  }

  /** The server has the replica's data from the start: a replica answers reads with it, and accepts no writes. */
  private failBack({ fault, endpoint, server, remains }: Hit<Extract<Fault, { kind: 'failback' }>>): void {
    this.lose(endpoint);
    if (fault.connections === 'broken') this.breakConnections(server);
    const replica = new SimServer(this.nextRun(endpoint), this.planOf(endpoint, { promotedFrom: server.replid }));
    server.follow(replica.replid, remains);
    server.isLoading = fault.loads === true;
    endpoint.mayKeepKeys = true;
    this.world.scheduler.after(fault.lasts, () => {
      if (fault.connections === 'broken') this.breakConnections(server);
      server.isLoading = false;
      server.promote(fault.forgets);
    });
  }

  /** Lets another server answer at the address from now on. */
  private replace(
    { fault, endpoint, server }: Hit & { readonly fault: { readonly connections?: string } },
    plan: Partial<ServerPlan>,
  ): void {
    const { own } = endpoint;
    const isElsewhere = this.world.endpoints.some((other) => other !== endpoint && other.server === server);
    if (isElsewhere && fault.connections === 'kept') this.world.assumptions.noteServedElsewhere();
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
  private restart(endpoint: Endpoint, down: number, plan: Partial<ServerPlan>): void {
    this.lose(endpoint);
    this.restartWith(endpoint, down, plan);
  }

  private restartWith(endpoint: Endpoint, down: number, plan: Partial<ServerPlan>): void {
    const { server } = endpoint;
    const addresses = server ? this.stop(server) : [endpoint];
    const machine = addresses.find(({ own }) => own === undefined) ?? endpoint;
    this.world.scheduler.after(down, () => {
      const vacant = addresses.filter((address) => address.server === undefined);
      if (vacant.length === 0) return;
      const restarted = new SimServer(this.nextRun(machine), this.planOf(machine, plan));
      for (const address of vacant) address.server = restarted;
    });
  }

  /** Stops a server. Returns all addresses that led to it. */
  private stop(server: SimServer): readonly Endpoint[] {
    const addresses = this.world.endpoints.filter((endpoint) => endpoint.server === server);
    for (const address of addresses) address.stop();
    return addresses;
  }

  private breakConnections(server: SimServer): void {
    for (const endpoint of this.world.endpoints) {
      if (endpoint.server !== server) continue;
      for (const connection of [...endpoint.connections]) connection.reset(0);
    }
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
    const { scheduler, health } = this.world;
    const { now } = scheduler;
    losses.at = now;
    if (!server) return;
    const left = server.data
      .keys()
      .filter(isLockKey)
      .map((key) => server.data.pttl(key));
    if (left.length === 0) return;
    losses.lockAt = now;
    // After a clock was set back, keys live longer than any lock.
    losses.lockUntil = Math.max(losses.lockUntil, now + Math.min(health.longestUsedTtl, Math.max(...left)));
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
