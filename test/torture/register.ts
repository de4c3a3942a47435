import { EventEmitter, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { now } from './trace.js';

/** A write that reached the register. */
export interface Write {
  readonly section: string;
  readonly worker: number;
  readonly keys: readonly string[];
  readonly token: number;
  readonly at: number;
  readonly accepted: boolean;
}

/** The message of a worker. */
type WriteRequest = Omit<Write, 'at' | 'accepted'>;

/** The protected resource. It accepts a write only with a token that is not smaller than the largest it has seen. */
export class Register implements AsyncDisposable {
  readonly writes: Write[] = [];
  private readonly largest = new Map<string, number>();
  private readonly events = new EventEmitter();
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer({ noDelay: true }, (socket) => this.serve(socket));

  /** @param fenced `false` accepts every write, to show the consequences */
  private constructor(private readonly fenced: boolean) {}

  static async open(fenced: boolean): Promise<Register> {
    const register = new Register(fenced);
    register.server.listen(0, '127.0.0.1');
    await once(register.server, 'listening');
    return register;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** The worker whose write is accepted next; `undefined` if that takes longer than `within` milliseconds. */
  async nextWriter(within: number): Promise<number | undefined> {
    const signal = AbortSignal.timeout(within);
    return once(this.events, 'write', { signal }).then(
      ([write]) => (write as Write).worker,
      () => undefined,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    const lines = createInterface(socket);
    // Workers are killed, which breaks their connections.
    for (const emitter of [socket, lines]) emitter.on('error', () => undefined);
    lines.on('line', (line) => {
      socket.write(this.accept(JSON.parse(line) as WriteRequest) ? 'accepted\n' : 'refused\n');
    });
  }

  private accept(request: WriteRequest): boolean {
    const { keys, token } = request;
    const accepted = !this.fenced || keys.every((key) => token >= (this.largest.get(key) ?? 0));
    if (accepted) for (const key of keys) this.largest.set(key, token);
    const write = { ...request, at: now(), accepted };
    this.writes.push(write);
    if (accepted) this.events.emit('write', write);
    return accepted;
  }
}

/** A worker's connection to the register. Answers arrive in the order of the writes. */
export class Writer {
  private readonly waiting: ((accepted: boolean) => void)[] = [];

  private constructor(private readonly socket: Socket) {
    createInterface(socket).on('line', (line) => this.waiting.shift()?.(line === 'accepted'));
  }

  static async to(port: number): Promise<Writer> {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    await once(socket, 'connect');
    return new Writer(socket);
  }

  /** Resolves with whether the write was accepted. */
  write(request: WriteRequest): Promise<boolean> {
    this.socket.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  end(): void {
    this.socket.end();
  }
}
