import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connect2,
  constants,
  type Settings,
} from 'node:http2';
import { connect, type Socket } from 'node:net';

/** One connection of a client that may leave in every way. */
export interface Connection {
  /** Sends a request. Over HTTP/1, the next one is pipelined behind it. */
  send(path: string, method?: string): void;
  /** Resolves when the server has sent this. */
  receives(text: string): Promise<void>;
  /** The status of the first response. */
  status(): Promise<number>;
  /** All that was received. */
  readonly received: string;
  /** Resolves when nothing more can arrive: whether the last response is complete. */
  closed(): Promise<boolean>;
  /** Stops reading. */
  pause(): void;
  leave(way?: string): void;
}

export type Version = 1 | 2;

/** The ways in which a client leaves that is still to receive something. */
export const WAYS = { 1: ['closes', 'resets', 'half-closes'], 2: ['cancels', 'destroys'] } as const;

export async function open(version: Version, url: string, settings: Settings = {}): Promise<Connection> {
  const connection = version === 1 ? new Connection1(url) : new Connection2(url, settings);
  await connection.opened;
  return connection;
}

abstract class Received {
  received = '';
  private readonly listeners = new Set<() => void>();

  protected take(chunk: Buffer | string): void {
    this.received += String(chunk);
    for (const listener of this.listeners) listener();
  }

  async receives(text: string): Promise<void> {
    while (!this.received.includes(text)) {
      await new Promise<void>((resolve) => {
        const listener = (): void => {
          this.listeners.delete(listener);
          resolve();
        };
        this.listeners.add(listener);
      });
    }
  }
}

class Connection1 extends Received implements Connection {
  readonly opened: Promise<unknown>;
  private readonly socket: Socket;
  private readonly end: Promise<unknown>;

  constructor(url: string) {
    super();
    const { hostname, port } = new URL(url);
    this.socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    this.socket.on('error', () => undefined).on('data', (chunk) => this.take(chunk));
    this.opened = once(this.socket, 'connect');
    this.end = new Promise((resolve) => this.socket.once('end', resolve).once('close', resolve));
  }

  send(path: string, method = 'GET'): void {
    this.socket.write(`${method} ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  }

  async status(): Promise<number> {
    await this.receives('\r\n\r\n');
    return Number(this.received.split(' ')[1]);
  }

  async closed(): Promise<boolean> {
    await this.end;
    this.socket.destroy();
    // The end of a chunked response.
    return this.received.endsWith('\r\n0\r\n\r\n');
  }

  pause(): void {
    this.socket.pause();
  }

  leave(way = 'closes'): void {
    if (way === 'closes') this.socket.destroy();
    else if (way === 'resets') this.socket.resetAndDestroy();
    else this.socket.end();
  }
}

class Connection2 extends Received implements Connection {
  readonly opened: Promise<unknown>;
  private readonly session: ClientHttp2Session;
  private stream: ClientHttp2Stream | undefined;

  constructor(url: string, settings: Settings) {
    super();
    this.session = connect2(url, { settings });
    this.session.on('error', () => undefined);
    this.opened = once(this.session, 'remoteSettings');
  }

  send(path: string, method = 'GET'): void {
    this.stream = this.session.request({ ':path': path, ':method': method });
    this.stream.on('error', () => undefined).on('data', (chunk: Buffer) => this.take(chunk));
    this.stream.on('response', (headers) =>
      this.take(`HTTP ${String(headers[':status'])} ${JSON.stringify(headers)}\n`),
    );
    this.stream.end();
  }

  async status(): Promise<number> {
    await this.receives('\n');
    return Number(this.received.split(' ')[1]);
  }

  async closed(): Promise<boolean> {
    if (this.stream && !this.stream.closed) await new Promise((resolve) => this.stream?.once('close', resolve));
    this.session.destroy();
    return this.stream?.rstCode === constants.NGHTTP2_NO_ERROR;
  }

  pause(): void {
    this.stream?.pause();
  }

  leave(way = 'destroys'): void {
    if (way === 'cancels') this.stream?.close(constants.NGHTTP2_CANCEL);
    else this.session.destroy();
  }
}
