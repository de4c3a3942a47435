import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../torture/trace.js';
import { type InstanceRecord, type Reply } from './checks.js';
import { eventsIn, type Task } from './trace.js';

const PROGRAM = join(import.meta.dirname, 'app.js');
/** For what hangs, in milliseconds. */
const PATIENCE = 60_000;
/** Shorter than Fastify keeps an idle connection, which could close in the moment of a request. */
const IDLE = 20_000;

/** One process of the application. */
export class Instance {
  private readonly agent = new Agent({ keepAlive: true, timeout: IDLE });
  private readonly child: ChildProcess;
  private readonly trace: string;
  private readonly ended: Promise<number | string>;
  private port = 0;
  private open = 0;
  private exit: number | string = 'hung';
  killedAt: number | undefined;
  private toldAt: number | undefined;

  private constructor(
    readonly name: string,
    folder: string,
    task: Omit<Task, 'instance' | 'trace'>,
  ) {
    this.trace = join(folder, `${name}.jsonl`);
    const log = openSync(join(folder, `${name}.log`), 'a');
    const argument = JSON.stringify({ ...task, instance: name, trace: this.trace } satisfies Task);
    this.child = spawn(process.execPath, ['--expose-gc', PROGRAM, argument], { stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    this.ended = once(this.child, 'exit').then(([code, signal]) => (this.exit = (code ?? signal) as number | string));
  }

  static async start(name: string, folder: string, task: Omit<Task, 'instance' | 'trace'>): Promise<Instance> {
    const instance = new Instance(name, folder, task);
    const ended = instance.ended.then((exit) => {
      throw new Error(
        `${name} ended with ${exit} before it listened:\n${readFileSync(join(folder, `${name}.log`), 'utf8')}`,
      );
    });
    const [message] = (await Promise.race([once(instance.child, 'message'), ended])) as [{ port: number }];
    instance.port = message.port;
    return instance;
  }

  get record(): InstanceRecord {
    const { name, killedAt, toldAt, exit } = this;
    return { name, killedAt, toldAt, exit, events: eventsIn(readFileSync(this.trace, 'utf8')) };
  }

  get hasEnded(): boolean {
    return this.exit !== 'hung';
  }

  async send(method: string, path: string): Promise<Reply> {
    this.open++;
    const reply = await this.ask(method, path);
    this.open--;
    if (this.open === 0 && this.toldAt !== undefined) this.agent.destroy();
    return reply;
  }

  private ask(method: string, path: string, agent = this.agent): Promise<Reply> {
    const answer = { request: `${method} ${path}`, instance: this.name, asked: now() };
    return new Promise((resolve) => {
      const fail = ({ message }: Error): void => resolve({ ...answer, at: now(), error: message });
      const options = { agent, port: this.port, host: '127.0.0.1', method, path };
      const sent = request({ ...options, signal: AbortSignal.timeout(PATIENCE) }, (response) => {
        let body = '';
        response.on('error', fail);
        response.on('data', (chunk) => (body += String(chunk)));
        response.on('end', () => {
          const retryAfter = response.headers['retry-after'];
          resolve({ ...answer, at: now(), status: response.statusCode, retryAfter, body: body.slice(0, 200) });
        });
      });
      sent.on('error', fail);
      sent.end();
    });
  }

  async kill(): Promise<void> {
    if (this.hasEnded) return;
    this.killedAt = now();
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** SIGTERM. The instance gets no more requests, and has begun all that it got. */
  async retire(): Promise<void> {
    // Answers to later requests, on a connection that was opened later, show that.
    for (let i = 0; i < 2; i++) await this.ask('GET', '/live', new Agent());
    this.toldAt = now();
    // As a load balancer does. Otherwise Fastify waits for as long as an idle connection may be open.
    if (this.open === 0) this.agent.destroy();
    this.child.kill('SIGTERM');
    await Promise.race([this.ended, sleep(PATIENCE, undefined, { ref: false })]);
    if (!this.hasEnded) this.child.kill('SIGKILL');
  }

  close(): void {
    this.child.kill('SIGKILL');
    this.agent.destroy();
  }
}
