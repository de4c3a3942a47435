import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Milliseconds between two attempts to reach the server. */
const RETRY = 5;

/** A TCP proxy that keeps the connections of its clients while the server behind it stops, returns or is replaced. */
export class StickyProxy implements AsyncDisposable {
  /** Number of connections that clients have opened so far. */
  accepted = 0;
  readonly #clients = new Set<Socket>();
  readonly #upstreams = new Set<Socket>();
  readonly #server: Server;

  private constructor(private target: number) {
    this.#server = createServer({ noDelay: true }, (client) => this.#carry(client));
  }

  static async to(port: number): Promise<StickyProxy> {
    const proxy = new StickyProxy(port);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forwards everything to another server from now on. */
  redirect(port: number): void {
    this.target = port;
    for (const upstream of this.#upstreams) upstream.destroy();
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #carry(client: Socket): void {
    this.accepted++;
    this.#clients.add(client);
    let upstream = this.#open(client, []);
    const waiting: Buffer[] = [];
    client.on('data', (chunk) => (upstream.destroyed ? waiting.push(chunk) : upstream.write(chunk)));
    client.on('error', () => client.destroy());
    const reopen = (): void => {
      if (client.destroyed) return;
      upstream = this.#open(client, waiting.splice(0));
      upstream.once('close', () => setTimeout(reopen, RETRY));
    };
    upstream.once('close', () => setTimeout(reopen, RETRY));
    client.once('close', () => {
      this.#clients.delete(client);
      upstream.destroy();
    });
  }

  #open(client: Socket, waiting: readonly Buffer[]): Socket {
    const upstream = connect({ host: '127.0.0.1', port: this.target, noDelay: true });
    this.#upstreams.add(upstream);
    upstream.on('data', (chunk) => client.write(chunk));
    upstream.on('error', () => upstream.destroy());
    upstream.once('close', () => this.#upstreams.delete(upstream));
    for (const chunk of waiting) upstream.write(chunk);
    return upstream;
  }
}
