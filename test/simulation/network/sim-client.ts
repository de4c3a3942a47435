import type { RedisOptions } from 'ioredis';
import { backoff } from '../../../lib/redis/connection.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';
import type { SimProcess } from '../engine/process.js';
import type { Planned, Scheduler } from '../engine/scheduler.js';
import { ReplyError } from '../server/database.js';
import { Connection, type Owner } from './connection.js';
import type { Endpoint } from './endpoint.js';
import type { Link } from './link.js';

/** As in ioredis: how long it tries to connect, and how long a socket may take to close, in milliseconds. */
const CONNECT_WITHIN = 10_000;
const DISCONNECT_WITHIN = 100;
/** Delay before the first packet of a connection is sent again, in milliseconds. The delay then doubles each time. */
const FIRST_RETRY = 1_000;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface Route {
  readonly process: SimProcess;
  readonly endpoint: Endpoint;
  readonly link: Link;
  readonly scheduler: Scheduler;
}

/** An ioredis client with the library's settings, as far as the library can notice a difference. */
export class SimClient implements RedisClient, Owner {
  status = 'wait';
  readonly options: RedisOptions;
  private readonly handlers = new Map<string, ((...args: unknown[]) => void)[]>();
  private readonly pending: Pending[] = [];
  private connection: Connection | undefined;
  private connecting: Pending | undefined;
  private dialing: Planned | undefined;
  private retry: Planned | undefined;
  private abandoning: Planned | undefined;
  private attempts = 0;
  private manuallyClosing = false;
  private isClosing = false;

  constructor(
    private readonly route: Route,
    private readonly copied: (copy: SimClient) => void,
  ) {
    this.options = { host: route.endpoint.name, port: 6379 };
  }

  on(event: string, listener: (...args: unknown[]) => void): void {
    const handlers = this.handlers.get(event) ?? [];
    handlers.push(listener);
    this.handlers.set(event, handlers);
  }

  duplicate(): SimClient {
    const copy = new SimClient(this.route, this.copied);
    this.copied(copy);
    return copy;
  }

  call(command: string, args: (string | number)[]): Promise<unknown> {
    if (this.status !== 'ready' || this.isClosing) {
      return Promise.reject(new Error(`Stream isn't writeable and enableOfflineQueue options is false`));
    }
    return this.request(command, args);
  }

  subscribe(channel: string): Promise<unknown> {
    return this.call('SUBSCRIBE', [channel]);
  }

  connect(): Promise<void> {
    if (['connecting', 'connect', 'ready'].includes(this.status)) {
      return Promise.reject(new Error('Redis is already connecting/connected'));
    }
    this.manuallyClosing = false;
    return new Promise((resolve, reject) => {
      this.connecting = { resolve: () => resolve(), reject };
      this.dial();
    });
  }

  disconnect(reconnect = false): void {
    if (!reconnect) {
      this.manuallyClosing = true;
      this.retry?.cancel();
    }
    if (this.dialing) {
      this.dialing.cancel();
      this.dialing = undefined;
      this.after(0, () => this.onClosed());
    } else if (this.connection && !this.isClosing) {
      const { connection } = this;
      this.isClosing = true;
      connection.close();
      this.abandoning = this.after(DISCONNECT_WITHIN, () => connection.abandon());
    } else if (this.status === 'wait') {
      this.onClosed();
    }
  }

  /** The process has ended, and its kernel closes its sockets. */
  abandon(): void {
    this.retry?.cancel();
    this.dialing?.cancel();
    this.connection?.close();
  }

  onReply(reply: unknown): void {
    const pending = this.pending.shift();
    if (reply instanceof ReplyError) pending?.reject(reply);
    else pending?.resolve(reply);
  }

  onMessage(channel: string, message: string): void {
    this.emit('message', channel, message);
  }

  onClosed(): void {
    this.abandoning?.cancel();
    this.connection = undefined;
    this.isClosing = false;
    this.become('close');
    if (this.manuallyClosing) {
      this.become('end');
    } else {
      this.status = 'reconnecting';
      this.retry = this.after(backoff(++this.attempts), () => this.dial());
    }
    const error = new Error('Connection is closed.');
    this.connecting?.reject(error);
    this.connecting = undefined;
    for (const { reject } of this.pending.splice(0)) reject(error);
  }

  private request(command: string, args: readonly (string | number)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.pending.push({ resolve, reject });
      this.connection?.send(command, args);
    });
  }

  private dial(): void {
    this.status = 'connecting';
    this.knock(this.route.scheduler.now, FIRST_RETRY);
  }

  private knock(since: number, retryAfter: number): void {
    const { link, scheduler } = this.route;
    if (!link.isBlocked('out') && !link.isBlocked('in')) {
      this.dialing = this.after(link.delay() + link.delay(), () => this.open());
    } else if (scheduler.now + retryAfter - since < CONNECT_WITHIN) {
      this.dialing = this.after(retryAfter, () => this.knock(since, 2 * retryAfter));
    } else {
      this.dialing = this.after(since + CONNECT_WITHIN - scheduler.now, () => this.fail('connect ETIMEDOUT'));
    }
  }

  private open(): void {
    const { process, endpoint, link, scheduler } = this.route;
    if (!endpoint.server) {
      this.fail('connect ECONNREFUSED');
      return;
    }
    this.dialing = undefined;
    this.connection = new Connection(this, process, endpoint, link, scheduler);
    this.become('connect');
    this.request('INFO', []).then(
      () => this.becomeReady(),
      () => undefined,
    );
  }

  private becomeReady(): void {
    this.attempts = 0;
    this.become('ready');
    this.connecting?.resolve(undefined);
    this.connecting = undefined;
  }

  private fail(message: string): void {
    this.dialing = undefined;
    this.emit('error', new Error(message));
    this.onClosed();
  }

  /** The status changes at once; listeners run a moment later. */
  private become(status: string): void {
    this.status = status;
    this.emit(status);
  }

  private emit(event: string, ...args: unknown[]): void {
    const handlers = this.handlers.get(event);
    if (!handlers) return;
    // Cheaper than queueMicrotask, which creates an asynchronous resource.
    void Promise.resolve().then(() => {
      for (const handler of handlers) handler(...args);
    });
  }

  /** A timer of the client library, which does not count as a timer of this library. */
  private after(delay: number, action: () => void): Planned {
    const { process, scheduler } = this.route;
    let isOff = false;
    const planned = scheduler.after(delay, () => process.receive(() => isOff || action()));
    return {
      cancel: () => {
        isOff = true;
        planned.cancel();
      },
    };
  }
}
