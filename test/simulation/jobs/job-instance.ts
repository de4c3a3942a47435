import { LockManager } from '../../../lib/locks/lock-manager.js';
import { type JobRecord, readJobRecord } from '../../../lib/operate/job-record.js';
import { resolveCall, type Settings } from '../../../lib/settings/settings.js';
import type { LockState, StateReading } from '../../../lib/fencing/lock-state.js';
import { Ticker } from '../../../lib/schedule/ticker.js';
import { type HeldJob, type JobContext, JobHandedOnError } from '../../../lib/schedule/job-locks.js';
import { Job } from '../../../lib/schedule/job.js';
import type { Chance } from '../engine/chance.js';
import type { MachineClock } from '../engine/machine-clock.js';
import { SimProcess } from '../engine/process.js';
import { JobMaster } from './job-master.js';
import { jobObserver } from './job-sightings.js';
import type { JobsWorld } from './jobs-world.js';
import { show } from './ledger.js';
import { doWork } from './work.js';

type Holding = Parameters<JobContext['locks']['hold']>[1];
type Register = Pick<LockState, 'read' | 'store'>;

const JOB = 'report';
const RESOURCE = `job:${JOB}`;
const MAX_HOLD = 24 * 3_600_000;

interface InstanceOptions {
  readonly world: JobsWorld;
  /** Number of the machine, and which of its processes this is. */
  readonly index: number;
  readonly incarnation: number;
  readonly clock: MachineClock;
  readonly chance: Chance;
  readonly settings: Settings;
}

export class JobInstance {
  readonly name: string;
  readonly index: number;
  readonly process: SimProcess;
  readonly masters: readonly JobMaster[];
  /** When it began, by the clocks of the masters, and in true time. */
  readonly bornAt: number;
  readonly upFrom: number;
  /** When it crashed or began to shut down, in true time; `Infinity` before. */
  upTo = Infinity;
  storing: JobRecord | undefined;
  readonly stopping = new AbortController();
  readonly chance: Chance;
  private readonly world: JobsWorld;
  private readonly settings: Settings;
  private readonly redlock: LockManager;
  private readonly job: Job;
  private readonly ticker: Ticker;

  constructor({ world, index, incarnation, clock, chance, settings }: InstanceOptions) {
    const { plan, scheduler } = world;
    this.name = `instance${index}.${incarnation}`;
    this.index = index;
    this.world = world;
    this.chance = chance;
    this.settings = settings;
    this.bornAt = world.mastersTime;
    this.upFrom = scheduler.now;
    this.process = new SimProcess(this.name, scheduler, clock, chance);
    const { process } = this;
    const network = { process, scheduler, chance, latency: plan.latency };
    this.masters = world.servers.map((server) => new JobMaster({ ...network, server }));
    this.redlock = new LockManager(this.masters, settings, { clock: process, random: chance, observer: {} });
    this.job = new Job(
      {
        ...{ name: JOB, resource: RESOURCE, schedule: world.ticks, policy: plan.policy },
        ...{ ttl: plan.ttl, maxHold: MAX_HOLD, declared: 'the simulation' },
      },
      {
        ...{ where: 'the simulation', call: (run) => doWork(world, this, run) },
        ...{ locks: { hold: (_, options) => this.hold(options) }, clock: process, instance: this.name, keyPrefix: '' },
        ...{ stopping: this.stopping.signal, observer: jobObserver(world, this) },
      },
    );
    this.ticker = new Ticker(world.ticks, process, this.job);
  }

  /** Whether it neither crashed nor began to shut down. */
  get isUp(): boolean {
    return this.upTo === Infinity;
  }

  start(): void {
    void this.redlock.masters.open().then(() => {
      if (!this.isUp) return;
      this.ticker.start();
      this.job.visit();
    });
  }

  crash(what: 'process' | 'machine' = 'process'): void {
    if (this.process.isDead) return;
    const { now } = this.world.scheduler;
    this.upTo = Math.min(this.upTo, now);
    this.process.die();
    for (const master of this.masters) master.abandon(what);
    for (const run of this.world.ledger.active) if (run.instance === this) run.endedAt = now;
  }

  /** As the module does: stops the jobs, waits for what they do, releases everything, and ends. */
  shutDown(grace: number): void {
    this.process.receive(() => {
      if (!this.isUp) return;
      this.upTo = this.world.scheduler.now;
      this.ticker.stop();
      this.stopping.abort(new JobHandedOnError());
      this.redlock.stop();
      void this.redlock
        .drain(grace)
        .then(() => this.redlock.close())
        .then(() => this.crash());
    });
  }

  private async hold({ ttl, maxHold, wait, signal }: Holding): Promise<HeldJob> {
    const { world, settings, redlock } = this;
    world.arrive('asks for the lock', this);
    const call = resolveCall(settings, { ttl, maxHold, wait, signal, extend: true });
    const lock = await redlock.acquire([RESOURCE], call);
    world.trace(this.name, () => 'has the lock');
    const { state } = lock;
    const register: Register = {
      read: (...options) => this.read(state, ...options),
      store: (...values) => this.store(state, ...values),
    };
    // The engine reads the state of this lock only, so that the calls can be observed here.
    Object.defineProperty(lock, 'state', { value: register });
    return {
      lock: lock,
      run: (work) => work(),
      end: async () => {
        world.trace(this.name, () => 'releases the lock');
        world.arrive('releases the lock', this);
        await lock.release();
      },
    };
  }

  private async read(state: Register, ...options: Parameters<Register['read']>): Promise<StateReading> {
    const { world } = this;
    world.arrive('opens the record', this);
    const floor = world.ledger.record;
    const reading = await state.read(...options);
    world.trace(this.name, () => `reads ${show(readJobRecord(reading.value))}`);
    if (reading.since !== undefined && world.ledger.isVoid) {
      world.reached('a record was read of which a majority of masters had lost the last one');
    }
    world.guard(() => world.ledger.noteReading(this, floor, reading.value));
    world.arrive('has read the record', this);
    return reading;
  }

  private async store(state: Register, ...[owner, value, options]: Parameters<Register['store']>): Promise<void> {
    const { world } = this;
    const record = value as JobRecord;
    world.guard(() => world.ledger.noteStoring(this, record));
    this.storing = record;
    const { lost } = world;
    world.trace(this.name, () => `stores ${show(record)}`);
    world.arrive(record.state === 'started' ? 'stores a start' : 'stores an end', this);
    try {
      await state.store(owner, record, options);
    } catch (error) {
      const isStart = record.state === 'started';
      world.reached(isStart ? 'the store of a start failed' : 'the store of an end failed, and was repeated');
      world.trace(this.name, () => `could not store it: ${String(error)}`);
      throw error;
    } finally {
      this.storing = undefined;
    }
    world.trace(this.name, () => 'has stored it');
    if (lost > world.lost) world.reached('a lost master was rewritten');
    world.guard(() => world.ledger.noteAcknowledged(this, record));
  }
}
