import type { RedlockOptions } from '../../lib/core/options.js';
import { resolveSettings } from '../../lib/core/settings.js';
import { Actor } from './actor.js';
import { Assumptions } from './assumptions.js';
import { Chance } from './engine/chance.js';
import { MachineClock } from './engine/machine-clock.js';
import { SimProcess } from './engine/process.js';
import { Scheduler } from './engine/scheduler.js';
import { FaultInjector } from './fault-injector.js';
import { Endpoint } from './network/endpoint.js';
import { SimNode } from './node.js';
import { Beliefs } from './properties/beliefs.js';
import { Tokens } from './properties/tokens.js';
import { Violation } from './properties/violation.js';
import type { FaultKind, Operation, Schedule } from './schedule.js';
import type { ModelFault } from './server/operations.js';
import { runId, SimServer } from './server/sim-server.js';

/** Everything that exists in one run. */
export class World {
  readonly scheduler = new Scheduler();
  readonly endpoints: readonly Endpoint[];
  readonly nodes: readonly SimNode[];
  readonly actors: Actor[] = [];
  /** The faults that have happened so far. */
  readonly inflicted: FaultKind[] = [];
  readonly assumptions: Assumptions;
  readonly beliefs: Beliefs;
  readonly tokens: Tokens;
  readonly settings;
  /** What went wrong first. */
  failure: Error | undefined;
  private readonly grants: Actor[] = [];

  constructor(
    readonly schedule: Schedule,
    readonly modelFaults: ReadonlySet<ModelFault>,
    /** Where the trace goes; `undefined` if nobody reads it. */
    private readonly log: ((line: string) => void) | undefined,
  ) {
    const { scheduler } = this;
    const { seed, servers, processes } = schedule;
    const options: RedlockOptions = schedule.options;
    this.settings = resolveSettings(options, servers.length);
    this.endpoints = servers.map(({ rate, offset, uptime }, index) => {
      const clock = new MachineClock(scheduler, rate, offset);
      const server = new SimServer(runId(index, 0), clock, modelFaults, undefined, uptime);
      return new Endpoint(`master${index}`, index, clock, scheduler, new Chance(seed, 100 + index), server);
    });
    this.nodes = processes.map(({ rate, offset }, index) => {
      const clock = new MachineClock(scheduler, rate, offset);
      const process = new SimProcess(`process${index}`, scheduler, clock, new Chance(seed, 200 + index));
      return new SimNode(
        process,
        this.settings,
        scheduler,
        this.endpoints,
        new Chance(seed, 300 + index),
        schedule.latency,
      );
    });
    this.assumptions = new Assumptions(schedule, this.settings.restartGuard, this.settings.driftFactor);
    this.beliefs = new Beliefs(scheduler, this.endpoints, this.assumptions, this.settings.maxTtl);
    this.tokens = new Tokens(scheduler, this.settings.maxTtl);
    this.plan();
  }

  trace(who: string, what: () => string): void {
    this.log?.(`${this.scheduler.now.toFixed(3).padStart(12)}  ${who.padEnd(20)} ${what()}`);
  }

  get isTraced(): boolean {
    return this.log !== undefined;
  }

  report(error: unknown): void {
    this.failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Something that the application does after a while, if its process runs. */
  later(node: SimNode, delay: number, action: () => void): void {
    this.scheduler.after(delay, () =>
      node.process.receive(() => {
        this.scheduler.mark(node.process.pendingTimers);
        action();
      }),
    );
  }

  granted(actor: Actor): void {
    this.grants.push(actor);
  }

  add(name: string, operation: Operation): Actor {
    const actor = new Actor(name, this.nodes[operation.process] as SimNode, operation, this);
    this.actors.push(actor);
    this.scheduler.at(operation.at, () => actor.node.process.receive(() => actor.begin()));
    return actor;
  }

  /** After everything that happens, once nothing is left to do at that moment. */
  check(): void {
    if (this.failure !== undefined) throw this.failure;
    if (this.grants.length > 0) this.checkOrder();
    this.beliefs.check();
  }

  noteClocks(): void {
    const errors = this.nodes.map(({ process }) => process.clocks.error);
    this.tokens.spread = Math.max(this.tokens.spread, Math.max(...errors) - Math.min(...errors) + 1);
  }

  private checkOrder(): void {
    for (const actor of this.grants.splice(0)) {
      if (actor.operation.wait === 0) continue;
      const overtaken = this.actors.find((other) => {
        if (other === actor || other.node !== actor.node || !other.isWaiting || other.operation.wait === 0)
          return false;
        const isEarlier = other.askedAt < actor.askedAt;
        return isEarlier && other.operation.resources.some((name) => actor.operation.resources.includes(name));
      });
      if (!overtaken) continue;
      const message = `${actor.name} was served before ${overtaken.name}, which had come first`;
      throw new Violation('first come, first served', this.scheduler.now, message);
    }
  }

  private plan(): void {
    const { processes, operations, faults } = this.schedule;
    processes.forEach(({ startsAt }, index) => {
      const node = this.nodes[index] as SimNode;
      this.scheduler.at(startsAt, () => node.process.receive(() => node.redlock.open()));
    });
    operations.forEach((operation, index) => this.add(`process${operation.process}/op${index}`, operation));
    const injector = new FaultInjector(this, new Chance(this.schedule.seed, 7));
    for (const fault of faults) injector.plan(fault);
    this.noteClocks();
  }
}
