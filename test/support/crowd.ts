import { Redis } from 'ioredis';
import type { Duration } from '../../lib/settings/duration.js';
import type { Lock } from '../../lib/locks/lock.js';
import type { AcquireOptions, RedlockOptions } from '../../lib/settings/options.js';
import type { Random } from '../../lib/redlock/holder.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import { redisMasters } from '../../lib/redis/master-source.js';
import { contextOf } from './context.js';
import { CountingMaster } from './counting-master.js';
import { eventually } from './eventually.js';
import { COUNTERS } from './leftovers.js';
import { type Masters, startMasters } from './masters.js';
import { Contender } from './redlocks.js';

/** Makes waiters poll as late as possible, so that a notification causes every earlier request. */
export class Patience extends SystemRandom {
  override fraction(): number {
    return 1 - Number.EPSILON;
  }
}

/** A contender that counts its requests. To the masters it is a separate process. */
export class CountingContender extends Contender {
  constructor(
    readonly counting: readonly CountingMaster[],
    options?: RedlockOptions,
    random?: Random,
  ) {
    super(counting, options, undefined, random);
  }

  /** Requests to all masters since the last `reset`. */
  get requests(): number {
    return this.counting.reduce((sum, { asked }) => sum + Object.values(asked).reduce((a, b) => a + b, 0), 0);
  }

  /** Acquire requests to all masters since the last `reset`. */
  get acquires(): number {
    return this.counting.reduce((sum, { asked }) => sum + asked.acquire, 0);
  }

  /**
   * Acquire requests to one master. The gate counts every attempt once. Another master may still have the released
   * key; it then receives a second request.
   */
  acquiresAt(index: number): number {
    return this.counting[index]?.asked.acquire ?? 0;
  }

  /** Notifications that named a key, from all masters, since the last `reset`. */
  get calls(): number {
    return this.counting.reduce((sum, { calls }) => sum + calls, 0);
  }

  reset(): void {
    for (const master of this.counting) {
      Object.assign(master.asked, { acquire: 0, extend: 0, release: 0, leave: 0 });
      master.calls = 0;
    }
  }
}

/** Masters, contenders that use all of them, and plain connections for the commands of an operator. */
export class Crowd implements AsyncDisposable {
  private constructor(
    readonly masters: Pick<Masters, 'servers' | 'urls'>,
    readonly contenders: readonly CountingContender[],
    private readonly clients: readonly Redis[],
    private readonly started: Masters | undefined,
  ) {}

  /** `masters`: how many to start, and to end with the crowd; or some that go on. */
  static async of(
    contenders: number,
    masters: number | Pick<Masters, 'servers' | 'urls'>,
    options?: RedlockOptions,
    random?: Random,
  ): Promise<Crowd> {
    const started = typeof masters === 'number' ? await startMasters(masters) : undefined;
    const used = started ?? (masters as Pick<Masters, 'servers' | 'urls'>);
    const clients = used.servers.map(({ port }) => {
      const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, disconnectTimeout: 100 });
      // A killed master is not an error for the operator's connection.
      return client.on('error', () => undefined);
    });
    const all = Array.from({ length: contenders }, () => {
      const counting = redisMasters('masters', used.urls, contextOf(options)).map((each) => new CountingMaster(each));
      return new CountingContender(counting, options, random);
    });
    await Promise.all(all.map(({ redlock }) => redlock.masters.connect(10_000)));
    return new Crowd(used, all, clients, started);
  }

  get requests(): number {
    return this.contenders.reduce((sum, { requests }) => sum + requests, 0);
  }

  reset(): void {
    for (const contender of this.contenders) contender.reset();
  }

  /** Runs one command on one master. */
  async callOn(index: number, command: string, ...args: string[]): Promise<unknown> {
    return this.clients[index]?.call(command, ...args);
  }

  /** Runs one command on every running master. */
  async call(command: string, ...args: string[]): Promise<unknown[]> {
    const running = this.clients.filter((_, i) => this.masters.servers[i]?.pid !== undefined);
    return Promise.all(running.map((client) => client.call(command, ...args)));
  }

  /**
   * Acquires a free resource on every master. A lock resolves at its quorum, and the first waiter could overtake it on
   * the last master: if that is the home master, it grants, and the waiter polls without a place in its queue.
   */
  async lockOnAll(
    contender: CountingContender,
    resource: string,
    ttl: Duration,
    options?: AcquireOptions,
  ): Promise<Lock> {
    const lock = await contender.acquire(resource, ttl, options);
    await eventually(async () => (await this.call('EXISTS', `lock:${resource}`)).every((count) => count === 1));
    return lock;
  }

  /** Number of processes in the queue of a resource, per master. */
  async queued(resource: string): Promise<number[]> {
    return (await this.call('ZCARD', `lock:\0queue:${resource}`)).map(Number);
  }

  /** Resolves when at least this many processes are queued for a resource. */
  async untilQueued(resource: string, count: number): Promise<void> {
    // The sum over all masters: a process may be queued on two of them if one was slow.
    await eventually(async () => (await this.queued(resource)).reduce((sum, some) => sum + some, 0) >= count);
  }

  /** The index of the server with the queue of a resource. At least one process must be in the queue. */
  async indexOfHomeMaster(resource: string): Promise<number> {
    return (await this.queued(resource)).findIndex((count) => count > 0);
  }

  /** Number of subscriber connections on each master. */
  async subscribers(): Promise<number[]> {
    const lists = (await this.call('CLIENT', 'LIST', 'TYPE', 'pubsub')) as string[];
    return lists.map((list) => list.split('\n').filter((line) => line !== '').length);
  }

  /** Number of keys on all running masters, without the counters, which outlive the locks. */
  async keys(): Promise<number> {
    const keys = (await this.call('KEYS', '*')) as string[][];
    return keys.flat().filter((key) => !COUNTERS.test(key)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.contenders.map((contender) => contender.close()));
    for (const client of this.clients) client.disconnect();
    await this.started?.stop();
  }
}
