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

  /** Forwards `from` to `to`, in order, whatever the delays are. */
  join(from: Socket, to: Socket): void {
    let last = Promise.resolve();
    from.on('data', (chunk) => {
      if (this.blackHole) return;
      const arrived = performance.now();
      const { delay } = this;
      last = last.then(async () => {
        const left = arrived + delay - performance.now();
        if (left > 0) await new Promise<void>((resolve) => setTimeout(resolve, left));
        await this.deliver(chunk, to);
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
    this.#upstreams.add(server);
    server.once('close', () => this.#upstreams.delete(server));
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
