import { type JobSchedule, toleranceOf } from '../../../lib/schedule/job-policy.js';
import { Keyspace } from '../../../lib/settings/keyspace.js';
import { quorumOf } from '../../../lib/redlock/quorum.js';
import { driftOf, resolveSettings, type Settings } from '../../../lib/settings/settings.js';
import { Chance } from '../engine/chance.js';
import { EPOCH, MachineClock } from '../engine/machine-clock.js';
import { Scheduler } from '../engine/scheduler.js';
import { JobFaults } from './job-faults.js';
import { JobInstance } from './job-instance.js';
import { JobServer } from './job-server.js';
import { Ledger } from './ledger.js';
import type { JobsPlan, Point } from './plan.js';
import type { RareState } from './rare-states.js';
import { scheduleOf } from './schedules.js';

/** Longest name of the entry that keeps the record. */
const ENTRY = new Keyspace('lock:').stateOf('job:report');

export class JobsWorld {
  readonly scheduler = new Scheduler();
  readonly ticks: JobSchedule;
  readonly servers: readonly JobServer[];
  readonly instances: JobInstance[] = [];
  readonly ledger: Ledger;
  readonly states = new Set<RareState>();
  readonly faults: JobFaults;
  readonly settings: Settings;
  /** How long new data does not vote, in milliseconds. */
  readonly quarantine: number;
  /** When the first instance started, by the clock that shows the earliest time. */
  firstStart = Infinity;
  failure: Error | undefined;
  private readonly machines: readonly MachineClock[];
  private readonly incarnations: number[];

  constructor(
    readonly plan: JobsPlan,
    private readonly log?: (line: string) => void,
  ) {
    const { scheduler } = this;
    const { seed, masters, instances, ttl } = plan;
    const shift = plan.startsAt - EPOCH;
    this.ticks = scheduleOf(plan.schedule);
    this.settings = resolveSettings({ ttl, maxTtl: ttl, restartGuard: false }, masters.length);
    this.quarantine = ttl + driftOf(this.settings, ttl);
    this.servers = masters.map(({ rate, offset }, index) => {
      const clock = new MachineClock(scheduler, rate, shift + offset);
      return new JobServer(`master${index}`, clock, scheduler, this.quarantine);
    });
    this.machines = instances.map(({ rate, offset }) => new MachineClock(scheduler, rate, shift + offset));
    this.incarnations = instances.map(() => 0);
    this.ledger = new Ledger(this);
    this.faults = new JobFaults(this, new Chance(seed, 50));
    for (const [index, { startsAt }] of instances.entries()) scheduler.at(startsAt, () => this.launch(index));
  }

  /** The median of all masters' clocks, in milliseconds since the epoch. */
  get mastersTime(): number {
    const times = this.servers.map(({ clock }) => clock.wallTime).sort((one, other) => one - other);
    return times[Math.floor((times.length - 1) / 2)] as number;
  }

  /** What the clock of the machine shows that is ahead of all others. */
  get latestTime(): number {
    return Math.max(...this.machines.map(({ wallTime }) => wallTime));
  }

  /**
   * Whether no instance is further ahead of a master than a tick may be late: only then, the marker of a master shows
   * which ticks may have run before it.
   */
  clocksAgreeOn(tick: number): boolean {
    const earliest = Math.min(...this.servers.map(({ clock }) => clock.wallTime));
    return this.latestTime - earliest <= toleranceOf(this.ticks, tick);
  }

  /** The number of masters that have lost the record and were not rewritten. */
  get lost(): number {
    return this.servers.filter((server) => server.hasLost(ENTRY)).length;
  }

  /** How many masters may have lost the record at any time. */
  get mayLose(): number {
    return this.servers.length - quorumOf(this.servers.length);
  }

  /** True time of a nominal time, as the masters see it. */
  moment(tick: number): number {
    return this.scheduler.now + tick - this.mastersTime;
  }

  nameOf(tick: number): string {
    return new Date(tick).toISOString().slice(11, 19);
  }

  launch(index: number): void {
    if (this.instances.some((instance) => instance.index === index && !instance.process.isDead)) return;
    const incarnation = (this.incarnations[index] as number) + 1;
    this.incarnations[index] = incarnation;
    const { plan } = this;
    const instance = new JobInstance({
      ...{ world: this, index, incarnation, clock: this.machines[index] as MachineClock },
      ...{ chance: new Chance(plan.seed, 1_000 + 20 * incarnation + index), settings: this.settings },
    });
    this.firstStart = Math.min(this.firstStart, instance.process.clocks.wallTime);
    this.instances.push(instance);
    this.trace(
      instance.name,
      () => `is up, ${((instance.process.clocks.wallTime - this.mastersTime) / 1_000).toFixed(1)} s ahead`,
    );
    instance.start();
  }

  instanceOn(index: number): JobInstance | undefined {
    return this.instances.find((instance) => instance.index === index && !instance.process.isDead);
  }

  arrive(point: Point, instance: JobInstance): void {
    this.faults.arrive(point, instance);
  }

  /** Runs an action of the application after a delay, if its process runs. */
  later(instance: JobInstance, delay: number, action: () => void): void {
    this.scheduler.after(delay, () => instance.process.receive(action));
  }

  reached(state: RareState): void {
    this.states.add(state);
  }

  trace(who: string, what: () => string): void {
    if (!this.log) return;
    const time = new Date(this.mastersTime).toISOString().slice(11, 23);
    this.log(`${time}  ${who.padEnd(14)} ${what()}`);
  }

  /** Keeps the first error of an action, which the engine would take for one of the job. */
  guard<T>(action: () => T): T | undefined {
    try {
      return action();
    } catch (error) {
      this.report(error);
      return undefined;
    }
  }

  report(error: unknown): void {
    this.failure ??= error instanceof Error ? error : new Error(String(error));
  }
}
