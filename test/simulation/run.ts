import { quorumOf } from '../../lib/redlock/quorum.js';
import { settlePromises } from './engine/microtasks.js';
import { type Outcome, playOut, runUntil } from './engine/play.js';
import { checkForgotten, checkIdle, checkNothingLeft, checkReleased } from './properties/leftovers.js';
import type { RareState } from './properties/sometimes.js';
import { Violation } from './properties/violation.js';
import { endOf, longestOf, type Fault, type FaultKind, type Operation, type Schedule } from './schedule.js';
import type { ModelFault } from './server/operations.js';
import { World } from './world.js';

export interface Result extends Outcome {
  /** Assumptions of the protocol that the run has broken, and 1 if there are none. */
  readonly broken: readonly string[];
  readonly sound: number;
  /** Faults of individual clients, which must not affect the others. */
  readonly ailments: readonly string[];
  readonly reached: readonly RareState[];
  readonly faults: readonly FaultKind[];
  readonly grants: number;
}

export interface RunOptions {
  readonly modelFaults?: ReadonlySet<ModelFault>;
  readonly log?: (line: string) => void;
}

/**
 * Time that processes need after the faults before they can lock again, besides locks and quarantines, in milliseconds:
 * reconnecting.
 */
const RECONNECTED_WITHIN = 16_000;
/** Lifetime of a queue that no waiter joins, in milliseconds. */
const QUEUE_LIFE = 5_000;
const SECOND = 1_000;
/**
 * How long a healthy client may wait besides the locks of others, in milliseconds: one poll, and the time until others
 * are back.
 */
const HEALTHY_WITHIN = 5_000;
const TIMERS_WITHIN = 50;
/** How long an idle process may take to notice what happened to a master, in milliseconds. */
const NOTICED_WITHIN = 11_000;
const MAX_EVENTS = 100_000;

/** Plays a schedule until everything is over, and checks all guarantees. */
export async function play(schedule: Schedule, { modelFaults = new Set(), log }: RunOptions = {}): Promise<Result> {
  const world = new World(schedule, modelFaults, log);
  const outcome = await playOut(schedule.seed, world.scheduler, () => new Course(world).run());
  const { assumptions, actors, inflicted, sometimes } = world;
  return {
    ...outcome,
    broken: [...assumptions.broken],
    sound: assumptions.broken.size === 0 ? 1 : 0,
    ailments: assumptions.ailments,
    reached: sometimes.states,
    faults: inflicted,
    grants: actors.filter(({ isDone, hasFailed }) => isDone && !hasFailed).length,
  };
}

function votes({ state }: { readonly state: string }): boolean {
  return state === 'voting';
}

function backBy(fault: Fault): number {
  if (fault.kind === 'spare') return Math.max(0, -(fault.ahead ?? 0));
  return fault.kind === 'serverJump' ? Math.max(0, -fault.by) : 0;
}

class Course {
  constructor(private readonly world: World) {}

  run(): void {
    const { world } = this;
    const { schedule, scheduler, health } = world;
    const end = endOf(schedule);
    this.until(end);
    const probes = this.probe(end);
    // Waiters use their own clocks, which may be slow.
    this.until(this.deadline(end) * 1.03 + SECOND, () => world.actors.every((actor) => this.isOver(actor)));
    this.checkProgress(probes);
    this.until(scheduler.now + 3 * SECOND);
    checkReleased(world);
    checkForgotten(world);
    // A timer that ends a quarantine is a little late.
    const calm = new Set(world.nodes.filter(({ redlock }) => redlock.masters.status().masters.every(votes)));
    this.until(scheduler.now + TIMERS_WITHIN);
    checkIdle(world, (node) => calm.has(node));
    // Time for locks that were never released, and queues that were never left, to expire.
    this.until(scheduler.now + health.longestTtl + QUEUE_LIFE + this.setBackAtMost + SECOND);
    checkNothingLeft(world);
    if (world.assumptions.ratesAreNormal) {
      // An idle process may have only just noticed what happened to a master.
      this.until(scheduler.now + NOTICED_WITHIN + health.longestTtl * 1.05);
      world.health.checkOver();
      checkIdle(world, () => true);
    }
    this.close();
    checkIdle(world, () => true);
  }

  private until(moment: number, isEnough?: () => boolean): void {
    const { world } = this;
    runUntil(world.scheduler, moment, { check: () => world.check(), most: MAX_EVENTS, isEnough });
  }

  /** Lets every living process request a lock after the faults are over. Each request must succeed. */
  private probe(end: number) {
    const { world } = this;
    const { operations } = world.schedule;
    const sharesLocks = operations.some(({ mode }) => mode);
    const permits = operations.find((operation) => operation.permits !== undefined)?.permits;
    const usesStates = world.schedule.operations.some(({ state }) => state);
    return world.nodes.flatMap((node, index) => {
      const { process } = node;
      if (!node.isThere) return [];
      const isHealthy = world.assumptions.isHealthy(node);
      const wait = Math.ceil((isHealthy ? this.healthyDeadline(end) : this.deadline(end)) - end);
      const operation: Operation = {
        at: end + 5 * (index + 1),
        ...{ process: index, resources: index === 0 ? ['a', 'b'] : ['a'], wait },
        ...{ ttl: world.settings.ttl, extend: false, minHold: 0, work: 1 },
        ...{ tokenAt: 0, newTtl: undefined, abortAfter: undefined },
        ...(index > 0 && usesStates && { work: 100, state: { at: 0, steps: ['get'], pause: 0 } }),
      };
      const more: Operation[] = [];
      const { state: _, ...plain } = { ...operation, resources: ['a'] };
      if (sharesLocks) more.push({ ...plain, mode: 'shared', tokenAt: undefined });
      if (permits !== undefined) more.push({ ...plain, permits });
      return [operation, ...more].map((one) => world.add(`${process.name}/probe`, one));
    });
  }

  /**
   * When every process must have had its lock: after the work, unreleased locks, a quarantine, and a quarantine that
   * began late.
   */
  private deadline(end: number): number {
    const { longestTtl } = this.world.health;
    const quarantine = longestTtl * 1.02 + SECOND;
    return this.busyUntil(end) + longestTtl + 2 * quarantine + this.setBack + RECONNECTED_WITHIN;
  }

  /** The same without faults on any master: after the locks of dead processes, but without quarantines. */
  private healthyDeadline(end: number): number {
    return this.busyUntil(end) + this.world.health.longestTtl * 1.02 + HEALTHY_WITHIN;
  }

  private busyUntil(end: number): number {
    const { operations } = this.world.schedule;
    const nested = operations.filter(({ inner }) => inner).map(longestOf);
    return (
      end +
      Math.max(0, ...operations.map(({ work }) => work), ...nested) +
      Math.max(0, ...operations.map(({ wait }) => wait))
    );
  }

  /**
   * Keys on a master whose clock was set back live longer by the same time. They prevent a lock only if the other
   * masters are too few for a quorum.
   */
  private get setBack(): number {
    const { servers, faults } = this.world.schedule;
    const sums = servers.map((_, server) =>
      faults.reduce((sum, fault) => sum + ('server' in fault && fault.server === server ? backBy(fault) : 0), 0),
    );
    const blocking = servers.length - quorumOf(servers.length);
    return sums.sort((a, b) => b - a)[blocking] ?? 0;
  }

  /** The same for a key that is left on any master. */
  private get setBackAtMost(): number {
    const { faults, servers } = this.world.schedule;
    const offsets = servers.map(({ offset }) => offset);
    // A copy of what another server stored ends by the clock of that one.
    const apart = faults.some(({ kind }) => kind === 'twin') ? Math.max(...offsets) - Math.min(...offsets) : 0;
    return faults.reduce((sum, fault) => sum + backBy(fault), apart);
  }

  private isOver({ isDone, node, pending }: World['actors'][number]): boolean {
    return node.process.isDead || (isDone && pending === 0);
  }

  private checkProgress(probes: World['actors']): void {
    const { world } = this;
    const { now } = world.scheduler;
    for (const actor of world.actors) {
      if (!this.isOver(actor)) throw new Violation('progress', now, `${actor.name} is still busy`);
    }
    if (!world.assumptions.ratesAreNormal) return;
    for (const { name, hasFailed, node } of probes) {
      if (hasFailed && node.isThere)
        throw new Violation('progress', now, `${name} got no lock although all faults are over`);
    }
  }

  private close(): void {
    const { world } = this;
    let closed = 0;
    const living = world.nodes.filter((node) => node.isThere);
    for (const { redlock } of living) {
      redlock.stop();
      const count = (): void => {
        closed++;
      };
      redlock.drain(0).then(
        () => redlock.close().then(count, (error: unknown) => world.report(error)),
        (error: unknown) => world.report(error),
      );
    }
    settlePromises();
    this.until(world.scheduler.now + 3 * SECOND);
    if (closed < living.length) {
      throw new Violation('nothing outlives its lock', world.scheduler.now, 'a process does not close');
    }
  }
}
