import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Faults of one direction of traffic. A change applies to the data that arrives from then on. */
export class Wire {
  /** Milliseconds by which every chunk is delayed. */
  delay = 0;
  /** Discards all data while the connection stays open, as a firewall that drops packets does. */
  blackHole = false;
  /** Bytes that pass per millisecond. A longer chunk is forwarded in pieces of this size. */
  pace = Infinity;
  /** Replaces each chunk, as a proxy that understands the protocol may. */
  rewrite = (chunk: Buffer): Buffer => chunk;
  /** Sockets whose data is discarded. */
  readonly lost = new WeakSet<Socket>();
  private gate: Promise<void> | undefined;
  private letGo: (() => void) | undefined;

  /** Holds everything that arrives until `pass` forwards it, in order. */
  hold(): void {
    this.gate ??= new Promise((resolve) => (this.letGo = resolve));
  }

  pass(): void {
    this.letGo?.();
    this.gate = undefined;
  }

  /** Forwards `from` to `to`, in order, whatever the delays are. */
  join(from: Socket, to: Socket): void {
    let last = Promise.resolve();
    from.on('data', (chunk) => {
      if (this.blackHole || this.lost.has(from)) return;
      const arrived = performance.now();
      const { delay, gate } = this;
      last = last.then(async () => {
        await gate;
        const left = arrived + delay - performance.now();
        if (left > 0) await new Promise<void>((resolve) => setTimeout(resolve, left));
        await this.deliver(this.rewrite(chunk), to);
      });
    });
    from.once('end', () => void last.then(() => to.end()));
  }

  private async deliver(chunk: Buffer, to: Socket): Promise<void> {
    let rest = chunk;
    while (rest.length > this.pace && to.writable) {
      to.write(rest.subarray(0, this.pace));
      rest = rest.subarray(this.pace);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    if (to.writable) to.write(rest);
  }
}

/** A TCP proxy on its own port, for faults between a client and one master. */
export class TcpProxy implements AsyncDisposable {
  /** From the client to the server. */
  readonly requests = new Wire();
  /** From the server to the client. */
  readonly replies = new Wire();
  /** Resets new connections instead of forwarding them. */
  refuse = false;

  readonly #open = new Set<Socket>();
  readonly #upstreams = new Set<Socket>();
  readonly #subscribers = new Set<readonly [client: Socket, server: Socket]>();
  readonly #server: Server;

  private constructor(public target: { readonly port: number; readonly host?: string }) {
    // Half-open, so that each direction ends only after its own last delayed chunk.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#carry(client));
  }

  static async to(port: number, host = '127.0.0.1'): Promise<TcpProxy> {
    const proxy = new TcpProxy({ port, host });
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Number of open connections between clients and this proxy. */
  get connections(): number {
    return this.#open.size / 2;
  }

  /** Discards the data of both directions while the connections stay open. */
  blackHole(on = true): void {
    this.requests.blackHole = on;
    this.replies.blackHole = on;
  }

  /** Like {@link blackHole}, but only for connections that have subscribed so far. */
  blackHoleSubscribers(): void {
    for (const [client, server] of this.#subscribers) {
      this.requests.lost.add(client);
      this.replies.lost.add(server);
    }
    this.#subscribers.clear();
  }

  /** Sends RST on every open connection. */
  reset(): void {
    for (const socket of this.#open) reset(socket);
  }

  /**
   * Closes the connections to the server without notifying the clients: their connections stay open, without a peer.
   */
  halfOpen(): void {
    for (const socket of this.#upstreams) socket.destroy();
  }

  async close(): Promise<void> {
    this.reset();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #carry(client: Socket): void {
    if (this.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: '127.0.0.1', noDelay: true, allowHalfOpen: true, ...this.target });
    const pair = [client, server] as const;
    this.#upstreams.add(server);
    server.once('close', () => this.#upstreams.delete(server));
    client.on('data', (chunk) => {
      if (chunk.includes('subscribe')) this.#subscribers.add(pair);
    });
    this.#track(client, server);
    this.#track(server, client);
    this.requests.join(client, server);
    this.replies.join(server, client);
  }

  // A connection that breaks on one side breaks on the other, as it would without a proxy.
  #track(socket: Socket, peer: Socket): void {
    this.#open.add(socket);
    socket.on('error', () => reset(peer));
    socket.once('close', () => {
      this.#open.delete(socket);
      if (socket.errored) peer.destroy();
    });
  }
}

/** A socket that is shutting down cannot be reset: its handle would never close, and Node would not exit. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
