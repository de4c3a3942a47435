import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type WorkerRecord } from './evidence.js';
import { now, type TraceEvent } from './trace.js';
import { type WorkerTask } from './worker.js';

/** How long a process may take to end after SIGTERM, in milliseconds, before it counts as stuck and is killed. */
const END_WITHIN = 15_000;
/** How long all workers may take to reach all masters, in milliseconds. */
const READY_WITHIN = 60_000;

/** A stopped worker cannot notice that its parent has ended; this guard can. */
const GUARD = 'read -r done || kill -9 "$1" 2>/dev/null';

export interface CrewOptions extends Pick<WorkerTask, 'library' | 'masters' | 'maxTtl' | 'restartGuard' | 'keys'> {
  /** Path of the compiled worker.ts. */
  readonly program: string;
  /** Folder for the traces of the workers. */
  readonly folder: string;
  readonly workers: number;
  readonly actors: number;
  readonly register: number;
  readonly seed: number;
}

interface Member {
  readonly task: WorkerTask;
  readonly child: ChildProcess;
  readonly exit: Promise<number | string>;
  readonly ready: Promise<void>;
  readonly isReady: () => boolean;
  killedAt?: number;
}

/** The worker processes. */
export class Crew implements AsyncDisposable {
  private readonly members: Member[] = [];
  private readonly active: Member[] = [];

  constructor(private readonly options: CrewOptions) {
    for (let worker = 0; worker < options.workers; worker++) this.start(worker);
  }

  /** Resolves when every worker has reached all masters. */
  async untilReady(): Promise<void> {
    const timer = new AbortController();
    const late = once(timer.signal, 'abort', { signal: AbortSignal.timeout(READY_WITHIN) }).catch(() => {
      throw new Error(`Not all workers met all masters within ${READY_WITHIN} ms`);
    });
    const ends = this.active.map(({ exit, isReady, task }) =>
      exit.then((how) => {
        if (!isReady()) throw new Error(`Worker ${task.name} ended with ${how} before it had met all masters`);
      }),
    );
    await Promise.race([Promise.all(this.active.map(({ ready }) => ready)), late, Promise.all(ends).then(() => late)]);
    late.catch(() => undefined);
  }

  pause(worker: number): void {
    this.active[worker]?.child.kill('SIGSTOP');
  }

  resume(worker: number): void {
    this.active[worker]?.child.kill('SIGCONT');
  }

  /** Kills a worker and starts another one in its place. */
  async replace(worker: number): Promise<void> {
    const member = this.active[worker];
    if (!member) return;
    // The time is taken before the kill: what a worker believes afterwards does not count.
    member.killedAt = now();
    member.child.kill('SIGKILL');
    await member.exit;
    this.start(worker);
  }

  /** Lets all workers exit by themselves, once they have started. */
  async end(): Promise<void> {
    await this.untilReady();
    await Promise.all(
      this.active.map(async ({ child, exit }) => {
        child.kill('SIGTERM');
        const stuck = setTimeout(() => child.kill('SIGKILL'), END_WITHIN);
        await exit;
        clearTimeout(stuck);
      }),
    );
  }

  /** The records of all workers. To be called when they have ended. */
  async records(): Promise<WorkerRecord[]> {
    return Promise.all(
      this.members.map(async ({ task, exit, killedAt }) => ({
        name: task.name,
        events: eventsIn(await readFile(task.trace, 'utf8').catch(() => '')),
        killedAt,
        exit: await exit,
      })),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.members) child.kill('SIGKILL');
    await Promise.all(this.members.map(({ exit }) => exit));
  }

  private start(worker: number): void {
    const { program, folder, seed, workers: _, ...rest } = this.options;
    const generation = this.members.filter(({ task }) => task.worker === worker).length;
    const name = `${worker}.${generation}`;
    const trace = join(folder, `${name}.jsonl`);
    const task: WorkerTask = { ...rest, worker, name, trace, seed: seed + 1_000 * worker + 100 * generation };
    const child = spawn(process.execPath, [program, JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const dismiss = guard(child.pid);
    let isReady = false;
    const ready = once(createInterface(child.stdout), 'line').then(() => void (isReady = true));
    const exit = new Promise<number | string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(code ?? String(signal)));
    });
    void exit.then(dismiss);
    this.active[worker] = { task, child, exit, ready, isReady: () => isReady };
    this.members.push(this.active[worker]);
  }
}

function eventsIn(text: string): TraceEvent[] {
  const lines = text.split('\n');
  // A killed worker may leave half a line.
  lines.pop();
  return lines.map((line) => JSON.parse(line) as TraceEvent);
}

function guard(pid: number | undefined): () => void {
  const shell = spawn('/bin/sh', ['-c', GUARD, 'worker-guard', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', () => undefined);
  shell.stdin.on('error', () => undefined);
  return () => shell.stdin.end('done\n');
}
