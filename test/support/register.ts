import { EventEmitter, once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Message, Section } from '../processes/fence.js';

/** A resource that refuses tokens smaller than the largest one it has seen, and keeps records for the test. */
export class Register implements AsyncDisposable {
  readonly sections: Section[] = [];
  /** Number of writes and claims with a token that was too small. */
  refused = 0;
  /** Tokens of accepted writes that were not larger than the token of an earlier write. */
  readonly staleAccepted: number[] = [];
  private readonly claims = new EventEmitter();
  private readonly arrivals = new EventEmitter();
  private readonly waiting = new Map<number, Socket>();
  private readonly largest = new Map<string, number>();
  private readonly written = new Map<string, number>();
  private readonly server = createServer((socket) => {
    socket.setNoDelay();
    socket.on('error', () => {});
    createInterface(socket).on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if (message.op === 'section') this.sections.push(message.section);
      else if (message.op === 'ready') this.arrive(message.id, socket);
      else socket.write(this.accepts(message) ? 'accepted\n' : 'refused\n');
    });
  });

  static async open(): Promise<Register> {
    const register = new Register();
    register.server.listen(0, '127.0.0.1');
    await once(register.server, 'listening');
    return register;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Resolves with the id of the process that claims the resource next, or with `undefined` if `over` aborts first. */
  async nextClaim(over: AbortSignal): Promise<number | undefined> {
    return once(this.claims, 'claim', { signal: over }).then(
      ([id]) => id as number,
      () => undefined,
    );
  }

  /** Resolves when a steered process waits for its next step. */
  async ready(id: number): Promise<void> {
    if (!this.waiting.has(id)) await once(this.arrivals, String(id));
  }

  /** Lets a waiting process take its next step. */
  go(id: number): void {
    this.waiting.get(id)?.write('go\n');
    this.waiting.delete(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => this.server.close(resolve));
  }

  private arrive(id: number, socket: Socket): void {
    this.waiting.set(id, socket);
    this.arrivals.emit(String(id));
  }

  private accepts({ op, id, keys, token }: Extract<Message, { token: number }>): boolean {
    if (keys.some((key) => token < (this.largest.get(key) ?? 0))) {
      this.refused++;
      return false;
    }
    if (op === 'claim') this.claims.emit('claim', id);
    for (const key of keys) {
      this.largest.set(key, token);
      if (op !== 'write') continue;
      if (token <= (this.written.get(key) ?? 0)) this.staleAccepted.push(token);
      this.written.set(key, token);
    }
    return true;
  }
}
