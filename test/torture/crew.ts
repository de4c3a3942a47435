import { Child } from './child.js';
import { type WorkerRecord } from './evidence.js';
import { type Register } from './register.js';
import { type TraceEvent } from './trace.js';
import { type WorkerTask } from './worker.js';

/** How long a process may take to end after SIGTERM, in milliseconds, before it counts as stuck and is killed. */
const END_WITHIN = 15_000;

export interface CrewOptions extends Omit<WorkerTask, 'worker' | 'instance' | 'trace'> {
  /** Path of the compiled worker.ts. */
  readonly program: string;
  /** Folder for the traces of the workers. */
  readonly folder: string;
  readonly workers: number;
}

/** The worker processes. */
export class Crew implements AsyncDisposable {
  private readonly members: Child<TraceEvent>[] = [];
  private readonly active: Child<TraceEvent>[] = [];
  private readonly starts: number[] = [];

  constructor(
    private readonly options: CrewOptions,
    private readonly register: Register,
  ) {
    for (let worker = 0; worker < options.workers; worker++) this.start(worker);
  }

  /** Resolves when every worker has reached all masters. */
  async untilReady(): Promise<void> {
    await Promise.all(this.active.map(({ ready }) => ready));
  }

  async stop(worker: number, milliseconds: number): Promise<void> {
    await this.active[worker]?.stop(milliseconds);
  }

  /** Kills a worker and starts another one in its place. */
  async replace(worker: number): Promise<void> {
    await this.active[worker]?.kill();
    this.start(worker);
  }

  /** Lets all workers exit by themselves, once they have started. */
  async end(): Promise<void> {
    await this.untilReady();
    await Promise.all(this.active.map((child) => child.end(END_WITHIN)));
  }

  /** The records of all workers. To be called when they have ended. */
  get records(): WorkerRecord[] {
    return this.members.map(({ record }) => record);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((child) => child[Symbol.asyncDispose]()));
  }

  private start(worker: number): void {
    const { program, folder, workers: _, ...rest } = this.options;
    const before = this.starts[worker] ?? 0;
    this.starts[worker] = before + 1;
    const task = { ...rest, worker, seed: rest.seed + 1_000 * worker + 100 * before };
    const child = new Child<TraceEvent>(`${worker}.${before}`, { program, folder, task });
    this.register.serve(child.process);
    this.active[worker] = child;
    this.members.push(child);
  }
}
