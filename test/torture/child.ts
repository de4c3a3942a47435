import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventsIn, now } from './trace.js';

/** For what hangs, in milliseconds: a busy machine takes minutes to start the processes of a deployment. */
const READY_WITHIN = 300_000;
/** How long a process may take to end after SIGTERM, in milliseconds. */
const PATIENCE = 60_000;

/** A stopped process would never notice that this one has ended. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** What a process leaves behind. Times are milliseconds of the machine's monotonic clock. */
export interface ChildRecord<Event> {
  readonly name: string;
  readonly events: readonly Event[];
  readonly killedAt?: number | undefined;
  /** Of SIGTERM. */
  readonly toldAt?: number | undefined;
  /** Exit code, the signal that ended it, or `hung`. */
  readonly exit: number | string;
}

/** One process of an application, from its start to its end. Its argument is a task, with its name and its trace, as JSON. */
export class Child<Event> implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly ended: Promise<number | string>;
  /** Resolves with the first message of the process that says so. */
  readonly ready: Promise<{ readonly port?: number }>;
  killedAt: number | undefined;
  protected toldAt: number | undefined;
  private exit: number | string = 'hung';
  private readonly trace: string;

  constructor(
    readonly name: string,
    { program, folder, task }: { readonly program: string; readonly folder: string; readonly task: object },
  ) {
    this.trace = join(folder, `${name}.jsonl`);
    writeFileSync(this.trace, '');
    const logFile = join(folder, `${name}.log`);
    const log = openSync(logFile, 'a');
    const argument = JSON.stringify({ ...task, instance: name, trace: this.trace });
    const child = spawn(process.execPath, ['--expose-gc', program, argument], { stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    running.add(child);
    this.process = child;
    this.ended = once(child, 'exit').then(([code, signal]) => {
      running.delete(child);
      return (this.exit = (code ?? signal) as number | string);
    });
    this.ready = new Promise((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`${name} ${why}:\n${readFileSync(logFile, 'utf8')}`));
      const late = setTimeout(() => fail(`was not ready within ${READY_WITHIN} ms`), READY_WITHIN);
      const early = (exit: unknown): void => {
        clearTimeout(late);
        fail(`ended with ${String(exit)} before it was ready`);
      };
      child.once('exit', early);
      child.on('message', (message: { ready?: true; port?: number }) => {
        if (!message.ready) return;
        clearTimeout(late);
        child.off('exit', early);
        resolve(message);
      });
    });
    this.ready.catch(() => undefined);
  }

  get hasEnded(): boolean {
    return this.exit !== 'hung';
  }

  get record(): ChildRecord<Event> {
    const { name, killedAt, toldAt, exit } = this;
    return { name, killedAt, toldAt, exit, events: eventsIn<Event>(readFileSync(this.trace, 'utf8')) };
  }

  async kill(): Promise<void> {
    if (this.hasEnded) return;
    // The time is taken before the kill: what it believes afterwards does not count.
    this.killedAt = now();
    this.process.kill('SIGKILL');
    await this.ended;
  }

  /** Stops it, and lets it go on. */
  async stop(milliseconds: number): Promise<void> {
    this.process.kill('SIGSTOP');
    await sleep(milliseconds);
    this.process.kill('SIGCONT');
  }

  /** SIGTERM, and SIGKILL for a process that does not end by itself. */
  async end(within = PATIENCE): Promise<void> {
    this.toldAt = now();
    this.process.kill('SIGTERM');
    await Promise.race([this.ended, sleep(within, undefined, { ref: false })]);
    if (!this.hasEnded) this.process.kill('SIGKILL');
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

/** Processes of one application: one at a time for each part that they play. */
export class Fleet<C extends Child<unknown>> implements AsyncDisposable {
  readonly all: C[] = [];
  /** By name of the part. */
  readonly inService = new Map<string, C>();

  constructor(private readonly create: (name: string) => C | Promise<C>) {}

  /** The name of the process has a number, so that those of one part can be distinguished. */
  async start(part: string): Promise<C> {
    const child = await this.create(`${part}${this.all.length}`);
    this.all.push(child);
    await child.ready;
    this.inService.set(part, child);
    return child;
  }

  /** Kills a process and starts another one in its place. */
  async replace(part: string): Promise<void> {
    const victim = this.inService.get(part);
    this.inService.delete(part);
    await victim?.kill();
    await this.start(part);
  }

  get kills(): { readonly instance: string; readonly at: number }[] {
    return this.all.flatMap(({ name, killedAt }) => (killedAt === undefined ? [] : [{ instance: name, at: killedAt }]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((child) => child[Symbol.asyncDispose]()));
  }
}

/** What a program found: the text of its report, and what must not have happened. */
export interface Outcome {
  readonly text: string;
  readonly problems: readonly string[];
}
