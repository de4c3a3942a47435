import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Enough for the first message of each protocol that is read here. */
const HEAD = 4096;

/** Reads the source of a connection from its first bytes; `undefined` while they do not show it. */
export type SourceReader = (head: Buffer) => string | undefined;

/** Each message of the cluster bus names its sender: 40 hexadecimal digits behind 40 bytes of header. */
export const busSource: SourceReader = (head) => {
  if (head.length < 80) return undefined;
  return head.toString('latin1', 40, 80);
};

/** A replica sends its own port before it asks for data. Clients send no such command, and stay without a source. */
export const replicationSource: SourceReader = (head) =>
  /listening-port\r\n\$\d+\r\n(\d+)\r\n/i.exec(head.toString('latin1'))?.[1];

interface Carried {
  source: string | undefined;
  /** Data was discarded, so that the rest of the stream makes no sense. */
  broken: boolean;
  readonly sockets: readonly Socket[];
}

/** A TCP proxy that discards the data of some sources, as a network that is cut between two machines does. */
export class SidedProxy implements AsyncDisposable {
  /** Port of the server behind the proxy, which is not known before the proxy is. */
  target = 0;
  /** Whether the source is cut off from the server, in both directions. */
  cuts: (source: string) => boolean = () => false;

  readonly #carried = new Set<Carried>();
  readonly #server: Server;
  readonly #read: SourceReader;

  private constructor(read: SourceReader) {
    this.#read = read;
    this.#server = createServer({ noDelay: true }, (client) => this.#carry(client));
  }

  static async start(read: SourceReader): Promise<SidedProxy> {
    const proxy = new SidedProxy(read);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends the connections whose data was discarded, so that their owners open new ones. */
  heal(): void {
    for (const carried of this.#carried) if (carried.broken) end(carried);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const carried of this.#carried) end(carried);
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #carry(client: Socket): void {
    const server = connect({ host: '127.0.0.1', port: this.target, noDelay: true });
    const carried: Carried = { source: undefined, broken: false, sockets: [client, server] };
    this.#carried.add(carried);
    for (const socket of carried.sockets) {
      socket.on('error', () => undefined);
      socket.once('close', () => {
        this.#carried.delete(carried);
        end(carried);
      });
    }

    let head = Buffer.alloc(0);
    client.on('data', (chunk: Buffer) => {
      if (carried.source === undefined && head.length < HEAD) {
        head = Buffer.concat([head, chunk]);
        carried.source = this.#read(head);
      }
      this.#pass(carried, chunk, server);
    });
    server.on('data', (chunk: Buffer) => this.#pass(carried, chunk, client));
  }

  #pass(carried: Carried, chunk: Buffer, to: Socket): void {
    carried.broken ||= carried.source !== undefined && this.cuts(carried.source);
    if (!carried.broken && to.writable) to.write(chunk);
  }
}

function end({ sockets }: Carried): void {
  for (const socket of sockets) socket.destroy();
}
