import type { Chance } from '../engine/chance.js';
import type { JobInstance } from './job-instance.js';
import type { JobServer } from './job-server.js';
import type { JobsWorld } from './jobs-world.js';
import type { Fault, FaultAction, Point } from './plan.js';

/** How long a kernel takes to report that a connection is gone, in milliseconds. */
const GONE_WITHIN = 5;

export interface Disturbance {
  readonly from: number;
  readonly to: number;
}

export class JobFaults {
  /** When masters, or the way to them, did not work; with the quarantine after a loss. */
  readonly outages: Disturbance[] = [];
  readonly pauses: (Disturbance & { readonly instance: JobInstance })[] = [];
  end = 0;
  private readonly counts = new Map<Point, number>();
  private readonly awaited: Fault[];

  constructor(
    private readonly world: JobsWorld,
    private readonly chance: Chance,
  ) {
    const { faults } = world.plan;
    this.awaited = faults.filter(({ when }) => 'point' in when);
    for (const { when, action } of faults) {
      if ('at' in when) world.scheduler.at(when.at, () => this.inflict(action, undefined));
    }
  }

  /** Inflicts the faults that are planned for the point, a moment later. None once the calm has begun. */
  arrive(point: Point, instance: JobInstance): void {
    const { world, awaited, counts } = this;
    const nth = (counts.get(point) ?? 0) + 1;
    counts.set(point, nth);
    if (world.scheduler.now > world.plan.lasts) return;
    for (const { when, action } of awaited) {
      if (!('point' in when) || when.point !== point || when.nth !== nth) continue;
      // Only the network can change while the process executes code.
      if (when.delay === 0 && action.kind === 'partition') this.inflict(action, instance);
      else world.scheduler.after(when.delay, () => this.inflict(action, instance));
    }
  }

  private inflict(action: FaultAction, actor: JobInstance | undefined): void {
    const { world } = this;
    if (action.kind === 'loss') {
      this.loseOne(action);
      return;
    }
    if (action.kind === 'great loss') {
      world.trace('fault', () => JSON.stringify(action));
      world.ledger.isVoid = true;
      for (const server of world.servers.slice(world.mayLose > 0 ? world.mayLose - 1 : 0)) {
        this.restart(server, action.down, Infinity);
      }
      return;
    }
    const target = action.instance === 'actor' ? actor?.index : action.instance;
    const instance = target === undefined ? undefined : world.instanceOn(target);
    if (!instance) return;
    world.trace('fault', () => `${instance.name}: ${JSON.stringify(action)}`);
    switch (action.kind) {
      case 'crash':
        this.noteCrash(instance);
        instance.crash(action.what);
        this.bringBack(instance, action.awayFor);
        return;
      case 'shutdown':
        instance.shutDown(action.grace);
        this.bringBack(instance, action.awayFor + action.grace + 2_000);
        return;
      case 'pause':
        this.pauses.push({ instance, ...this.lasting(action.lasts) });
        instance.process.pause(action.lasts, action.how);
        return;
      case 'partition':
        this.outages.push(this.lasting(action.lasts));
        for (const number of action.masters) {
          const link = instance.masters[number]?.link;
          if (action.direction !== 'in') link?.block('out', action.lasts);
          if (action.direction !== 'out') link?.block('in', action.lasts);
        }
    }
  }

  /** Unless more masters than the stated condition allows would then have lost the record. */
  private loseOne(action: Extract<FaultAction, { kind: 'loss' }>): void {
    const { world } = this;
    const server = world.servers[action.master] as JobServer;
    const before = world.lost;
    if (!server.isUp || before >= world.mayLose) {
      world.reached('a loss was withheld to keep the condition');
      return;
    }
    world.trace('fault', () => JSON.stringify(action));
    world.reached('a master lost its data');
    if (action.data === 'stale') world.reached('a master came back with older data');
    if (action.data === 'flushed') {
      this.outages.push(this.lasting(world.quarantine));
      server.lose(Infinity);
    } else {
      this.restart(server, action.down, action.data === 'stale' ? action.lag : Infinity);
    }
  }

  private restart(server: JobServer, down: number, lag: number): void {
    const { world } = this;
    this.outages.push(this.lasting(down + world.quarantine));
    // Before it is up again: the condition counts it from now on.
    server.lose(lag);
    this.stop(server);
    world.scheduler.after(down, () => {
      server.quarantineNow();
      server.isUp = true;
    });
  }

  private stop(server: JobServer): void {
    server.isUp = false;
    for (const { masters } of this.world.instances) {
      masters.find(({ name }) => name === server.name)?.break(this.chance.fraction() * GONE_WITHIN);
    }
  }

  private bringBack(instance: JobInstance, after: number): void {
    if (after === Infinity) return;
    this.lasting(after);
    this.world.scheduler.after(after, () => this.world.launch(instance.index));
  }

  private lasting(milliseconds: number): Disturbance {
    const { now } = this.world.scheduler;
    this.end = Math.max(this.end, now + milliseconds);
    return { from: now, to: now + milliseconds };
  }

  private noteCrash(instance: JobInstance): void {
    const { world } = this;
    const { storing } = instance;
    if (storing?.state === 'started') {
      world.reached('a crash between the request to store a start and its acknowledgement');
    } else if (storing?.state === 'ok' || storing?.state === 'failed') {
      world.reached('a crash between a run and the acknowledgement of its end');
    }
    if (world.ledger.active.some((run) => run.instance === instance)) world.reached('a crash during a run');
  }
}
