import type { ArgumentsHost } from '@nestjs/common';

// What ends: a response, the HTTP/2 stream or the socket that carries it.
interface Ending {
  readonly destroyed?: boolean;
  readonly closed?: boolean;
  readonly aborted?: boolean;
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

interface RawResponse extends Ending {
  readonly writableEnded: boolean;
  readonly headersSent: boolean;
  readonly end: (...args: unknown[]) => unknown;
  destroy(error?: Error): unknown;
}

interface RawRequest {
  readonly httpVersionMajor?: number;
  readonly stream?: unknown;
  readonly socket?: unknown;
}

type Platform<Raw> = (Raw & { readonly raw?: Raw; readonly sent?: boolean }) | undefined;

// A request and its response. Each of the objects that make it up may be the only one that shows or tells its end: the
// response of HTTP/2 has no `destroyed`, and one of HTTP/1 that waits behind others on its connection is told nothing.
export class HttpExchange {
  private readonly carrier: Ending | undefined;
  private readonly isHttp2: boolean;

  private constructor(
    readonly response: RawResponse,
    private readonly reply: Platform<RawResponse>,
    { httpVersionMajor, stream, socket }: RawRequest,
  ) {
    this.isHttp2 = httpVersionMajor === 2;
    const carrier = this.isHttp2 ? stream : socket;
    this.carrier = canEnd(carrier) ? carrier : undefined;
  }

  static of(host: ArgumentsHost): HttpExchange | undefined {
    if (host.getType() !== 'http') return undefined;
    const http = host.switchToHttp();
    const reply = http.getResponse<Platform<RawResponse>>();
    const response = reply?.raw ?? reply;
    const request = http.getRequest<Platform<RawRequest>>();
    // Packages that run handlers through an ExternalContextCreator may declare their context as HTTP without a response.
    return canEnd(response) ? new HttpExchange(response, reply, request?.raw ?? request ?? {}) : undefined;
  }

  // So that the client can tell a part from the whole: without an error, a stream of HTTP/2 ends like one that is complete.
  cutOff(): void {
    this.response.destroy(this.isHttp2 ? new Error('the response is incomplete') : undefined);
  }

  // Nothing more can be written: the response is complete, or cannot be received.
  get isOver(): boolean {
    return this.response.writableEnded || this.isClosed;
  }

  // The client left, or was cut off, before the response was complete.
  get isGone(): boolean {
    return !this.response.writableEnded && this.isClosed;
  }

  // The application writes the response, or has taken it over.
  get isBegun(): boolean {
    return this.response.headersSent || this.reply?.sent === true;
  }

  // The client has a part of the response.
  get isPartial(): boolean {
    return this.response.headersSent && !this.isOver;
  }

  // Calls the listener once, when the exchange is over. Returns what stops that.
  onOver(listener: () => void): () => void {
    const { response, carrier } = this;
    const stop = (): void => {
      for (const event of ['finish', 'close']) response.off(event, over);
      if (carrier) stopClosed(carrier, over);
    };
    const over = (): void => {
      stop();
      listener();
    };
    for (const event of ['finish', 'close']) response.once(event, over);
    if (carrier) onClosed(carrier, over);
    return stop;
  }

  // The same, but from when all was handed over to be sent. That is no event, and how long the rest takes is the client's
  // choice: it may not read, or have its next request wait behind one that never ends.
  onEnded(listener: () => void): () => void {
    const { response } = this;
    let isWaiting = true;
    const stop = this.onOver(() => ended());
    const ended = (): void => {
      stop();
      if (isWaiting) listener();
      isWaiting = false;
    };
    const end = response.end;
    Reflect.set(response, 'end', function (this: unknown, ...args: unknown[]): unknown {
      const result: unknown = Reflect.apply(end, this, args);
      ended();
      return result;
    });
    return () => {
      isWaiting = false;
      stop();
    };
  }

  private get isClosed(): boolean {
    return isClosed(this.response) || (this.carrier !== undefined && isClosed(this.carrier));
  }
}

function canEnd<T>(value: T): value is T & Ending {
  return typeof (value as Partial<Ending> | null | undefined)?.once === 'function';
}

function isClosed({ destroyed, closed, aborted }: Ending): boolean {
  return destroyed === true || closed === true || aborted === true;
}

// A client may send any number of requests on one connection, which gets one listener for all of them.
const CLOSED = new WeakMap<Ending, Set<() => void>>();

function onClosed(carrier: Ending, listener: () => void): void {
  let listeners = CLOSED.get(carrier);
  if (!listeners) {
    const all = (listeners = new Set());
    CLOSED.set(carrier, all);
    carrier.once('close', () => {
      for (const each of [...all]) each();
    });
  }
  listeners.add(listener);
}

function stopClosed(carrier: Ending, listener: () => void): void {
  CLOSED.get(carrier)?.delete(listener);
}
