import type { Chance } from './engine/chance.js';
import type { Endpoint } from './network/endpoint.js';
import type { Direction } from './network/link.js';
import type { SimNode } from './node.js';
import type { Fault, LinkFault, ProcessFault, ServerFault } from './schedule.js';
import { type Remains, runId, SimServer } from './server/sim-server.js';
import type { World } from './world.js';

/** Marks names of our own. */
const OWN = '\0';
/** Ends the name of the hash of fencing counters. */
const COUNTERS = '\0fences';

/** Makes the faults of a schedule happen. */
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
    // A file on disk, or a replica, is as old as it will be too old then.
    if ('lag' in fault) {
      const remember = (): void => {
        remains = this.endpointOf(fault)?.server?.data.copy() ?? remains;
      };
      scheduler.at(Math.max(0, fault.at - fault.lag), remember);
    }
    scheduler.at(fault.at, () => this.inflict(fault, remains));
  }

  private inflict(fault: Fault, remains: Remains | undefined): void {
    const { world } = this;
    const endpoint = this.endpointOf(fault);
    const isWithoutServer = 'server' in fault && !('process' in fault) && endpoint?.server === undefined;
    if (isWithoutServer && fault.kind !== 'serverJump') return;
    const victim = fault.kind === 'evict' ? this.victimOn(endpoint) : undefined;
    if (fault.kind === 'evict' && victim === undefined) return;
    world.inflicted.push(fault.kind);
    world.assumptions.note(fault, endpoint, world.nodes);
    world.trace('fault', () => JSON.stringify(victim === undefined ? fault : { ...fault, victim }));
    if ('process' in fault && !('server' in fault)) this.hitProcess(fault, world.nodes[fault.process] as SimNode);
    else if ('process' in fault) this.hitLink(fault, world.nodes[fault.process] as SimNode, endpoint as Endpoint);
    else this.hitServer(fault, endpoint as Endpoint, remains, victim);
    world.noteClocks();
  }

  private hitProcess(fault: ProcessFault, node: SimNode): void {
    switch (fault.kind) {
      case 'pause':
      case 'suspend':
        node.process.pause(fault.lasts, fault.kind);
        return;
      case 'wallJump':
        node.process.clocks.step(fault.by);
        return;
      case 'die':
        node.die();
        for (const endpoint of this.world.endpoints) endpoint.mayKeepKeys = true;
    }
  }

  private hitLink(fault: LinkFault, node: SimNode, endpoint: Endpoint): void {
    const link = node.links[endpoint.index];
    if (!link) return;
    switch (fault.kind) {
      case 'partition': {
        const directions: readonly Direction[] = fault.direction === 'both' ? ['out', 'in'] : [fault.direction];
        for (const direction of directions) link.block(direction, fault.lasts);
        return;
      }
      case 'cut':
        for (const connection of [...endpoint.connections]) {
          if (connection.processName === node.process.name) connection.break(fault.cut);
        }
        return;
      case 'slow': {
        const { latency } = link;
        link.latency = { least: 0.1, most: fault.latency };
        this.world.scheduler.after(fault.lasts, () => (link.latency = latency));
        return;
      }
    }
  }

  private hitServer(
    fault: ServerFault,
    endpoint: Endpoint,
    remains: Remains | undefined,
    victim: string | undefined,
  ): void {
    const { world } = this;
    const { server } = endpoint;
    switch (fault.kind) {
      case 'crash': {
        const left = fault.data === 'kept' ? server?.data.copy() : fault.data === 'stale' ? remains : undefined;
        if (fault.data !== 'kept') this.lose(endpoint);
        endpoint.stop();
        world.scheduler.after(fault.down, () => {
          const run = this.nextRun(endpoint);
          endpoint.server ??= new SimServer(run, endpoint.clock, world.modelFaults, left);
        });
        return;
      }
      case 'promote':
        this.lose(endpoint);
        if (fault.connections === 'broken') endpoint.stop();
        endpoint.server = SimServer.promoted(
          this.nextRun(endpoint),
          endpoint.clock,
          world.modelFaults,
          remains ?? new Map(),
        );
        endpoint.mayKeepKeys = true;
        return;
      case 'flush':
        this.lose(endpoint);
        server?.data.clear();
        return;
      case 'evict':
        endpoint.lostAt = world.scheduler.now;
        server?.data.forget(victim as string);
        if (victim?.endsWith(COUNTERS)) world.tokens.loseCounters('unguarded');
        return;
      case 'scriptFlush':
        server?.scripts.clear();
        return;
      case 'oom':
        if (server) server.data.isFull = true;
        world.scheduler.after(fault.lasts, () => server && (server.data.isFull = false));
        return;
      case 'readonly':
        server?.demote();
        endpoint.mayKeepKeys = true;
        world.scheduler.after(fault.lasts, () => server?.promote());
        return;
      case 'hang':
        endpoint.pause(fault.lasts);
        return;
      case 'serverJump':
        // What has expired is gone by then: servers look for it all the time.
        server?.data.keys();
        endpoint.clock.step(fault.by);
        if (fault.by > 0) endpoint.lostAt = world.scheduler.now;
        // What is kept for a while (minHold) is kept for longer.
        else endpoint.mayKeepKeys = true;
    }
  }

  /** Mostly the key of a lock, now and then something of our own. */
  private victimOn(endpoint: Endpoint | undefined): string | undefined {
    const keys = endpoint?.server?.data.keys() ?? [];
    const locks = keys.filter((key) => !key.includes(OWN));
    return this.chance.pick(this.chance.happens(0.8) ? locks : keys);
  }

  /** Everything that was acknowledged may be forgotten. */
  private lose(endpoint: Endpoint): void {
    const { assumptions, tokens, scheduler, settings } = this.world;
    endpoint.lostAt = scheduler.now;
    tokens.loseCounters(settings.restartGuard && assumptions.broken.size === 0 ? 'guarded' : 'unguarded');
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
