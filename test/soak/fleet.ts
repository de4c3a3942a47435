import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { Child } from '../torture/child.js';
import { now } from '../torture/trace.js';
import { type Reply } from './checks.js';
import type { SoakEvent, Task } from './trace.js';

const PROGRAM = join(import.meta.dirname, 'app.js');
/** For what hangs, in milliseconds. */
const PATIENCE = 60_000;
/** Shorter than Fastify keeps an idle connection, which could close in the moment of a request. */
const IDLE = 20_000;

/** One process of the application. */
export class Instance extends Child<SoakEvent> {
  private readonly agent = new Agent({ keepAlive: true, timeout: IDLE });
  private open = 0;

  constructor(name: string, folder: string, task: Partial<Task>) {
    super(name, { program: PROGRAM, folder, task });
  }

  async send(method: string, path: string): Promise<Reply> {
    this.open++;
    const reply = await this.ask(method, path);
    this.open--;
    if (this.open === 0 && this.toldAt !== undefined) this.agent.destroy();
    return reply;
  }

  private async ask(method: string, path: string, agent = this.agent): Promise<Reply> {
    const { port } = await this.ready;
    const answer = { request: `${method} ${path}`, instance: this.name, asked: now() };
    return new Promise((resolve) => {
      const fail = ({ message }: Error): void => resolve({ ...answer, at: now(), error: message });
      const options = { agent, port, host: '127.0.0.1', method, path };
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

  /** SIGTERM. The instance gets no more requests, and has begun all that it got. */
  override async end(): Promise<void> {
    // Answers to later requests, on a connection that was opened later, show that.
    for (let i = 0; i < 2; i++) await this.ask('GET', '/live', new Agent());
    this.toldAt = now();
    // As a load balancer does. Otherwise Fastify waits for as long as an idle connection may be open.
    if (this.open === 0) this.agent.destroy();
    await super.end();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.agent.destroy();
    await super[Symbol.asyncDispose]();
  }
}
