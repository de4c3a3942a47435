import type { LockLostError } from '../../lib/redlock/errors.js';
import type { LockObserver } from '../../lib/operate/observer.js';
import type { Lease } from '../../lib/redlock/lease.js';
import type { LeaseContext } from '../../lib/redlock/terms.js';
import { LockManager } from '../../lib/locks/lock-manager.js';
import type { Settings } from '../../lib/settings/settings.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { RedisMaster } from '../../lib/redis/redis-master.js';
import type { Chance } from './engine/chance.js';
import type { SimProcess } from './engine/process.js';
import type { Scheduler } from './engine/scheduler.js';
import type { Endpoint } from './network/endpoint.js';
import { Link } from './network/link.js';
import { SimClient } from './network/sim-client.js';

export interface NodePlan {
  readonly process: SimProcess;
  readonly index: number;
  readonly settings: Settings;
  readonly scheduler: Scheduler;
  /** All endpoints, and the order in which this process lists them. */
  readonly endpoints: readonly Endpoint[];
  readonly order: readonly number[];
  readonly chance: Chance;
  readonly latency: number;
  readonly hears: NodeListener;
}

export interface NodeListener {
  readonly reported: (event: keyof LockObserver, words: string) => void;
  readonly lost: (node: SimNode, error: LockLostError) => void;
  /** A lock has ended, and no work had begun under it. */
  readonly unused: () => void;
}

/** One process of an application that uses the library. */
export class SimNode {
  readonly redlock: LockManager;
  readonly process: SimProcess;
  readonly settings: Settings;
  readonly index: number;
  readonly addresses: readonly Endpoint[];
  readonly links: readonly Link[];
  /** When the secret part of each token was drawn, in true time: just before its attempt. */
  private readonly drawnAt = new Map<string, number>();
  hasLeft = false;
  /** The resources of each operation that was granted a lock which ended before its work began. */
  readonly unused = new Set<readonly string[]>();
  /** An observer of acquisitions looks at each lock before its work begins, which the library does not do without one. */
  readonly isMeasured: boolean;
  private readonly masters = new Map<Endpoint, RedisMaster>();
  private readonly clients: SimClient[] = [];
  constructor({ process, index, settings, scheduler, endpoints, order, chance, latency, hears }: NodePlan) {
    this.process = process;
    this.index = index;
    this.isMeasured = index % 2 === 1;
    this.settings = settings;
    this.links = endpoints.map(() => new Link(scheduler, chance, latency));
    const random = {
      fraction: () => chance.fraction(),
      token: () => {
        const token = chance.token();
        this.drawnAt.set(token, scheduler.now);
        return token;
      },
    };
    const surroundings = { clock: process, random, observer: this.observerFor(hears) };
    const encoder = new RequestEncoder();
    this.addresses = order.map((number) => endpoints[number] as Endpoint);
    for (const endpoint of this.addresses) {
      const link = this.links[endpoint.index] as Link;
      const client = new SimClient({ process, endpoint, link, scheduler }, (copy) => this.clients.push(copy));
      this.clients.push(client);
      const context = { settings, encoder, ...surroundings };
      this.masters.set(endpoint, new RedisMaster(endpoint.name, client, context));
    }
    const named = { ...settings, instance: process.name };
    this.redlock = new LockManager([...this.masters.values()], named, surroundings);
    const leases: LeaseContext<Lease> = this.redlock['redlock']['leases'];
    const { ended } = leases;
    const noteEnd = (lease: Lease): void => {
      if (!lease.isUsed && lease.loss) {
        this.unused.add(lease.resources);
        hears.unused();
      }
      ended(lease);
    };
    Object.assign(leases, { ended: noteEnd });
  }

  /** When the attempt with this token began, in true time. */
  drawnFrom(token: string): number {
    const drawnAt = this.drawnAt.get(token.split('@', 1)[0] as string);
    if (drawnAt === undefined) throw new Error(`this process has not drawn ${token}`);
    return drawnAt;
  }

  /** Whether it takes part: it has neither died nor left. */
  get isThere(): boolean {
    return !this.process.isDead && !this.hasLeft;
  }

  /** Timers of masters: until the next answer of a gate, and until a connection or a master counts as silent. */
  get masterTimers(): number {
    const timers = [
      ...[...this.masters.values()].flatMap((master) => [master['wait'], master['queue']['watch']?.['timer']]),
      ...this.redlock.masters.all.map((master) => master['watch']?.['timer']),
    ];
    return timers.filter((timer) => this.process.isPending(timer)).length;
  }

  die(): void {
    this.process.die();
    for (const client of this.clients) client.abandon();
  }

  /** Releases everything and ends, as for a new version of the application. */
  async leave(): Promise<void> {
    this.hasLeft = true;
    this.redlock.stop();
    await this.redlock.drain(0);
    await this.redlock.close();
  }

  private observerFor({ reported, lost }: NodeListener): LockObserver {
    return {
      ...(this.isMeasured && { acquiring: () => ({ granted: () => undefined }) }),
      lockLost: (error) => {
        reported('lockLost', error.message);
        lost(this, error);
      },
      masterAnswered: (_, __, answer) => {
        if (answer.kind === 'unreachable') reported('masterAnswered', answer.reason);
      },
      masterQuarantined: (_, reason) => reported('masterQuarantined', reason),
      masterRefused: (_, reason) => reported('masterRefused', reason),
      masterVotesAgain: (master) => reported('masterVotesAgain', master),
      masterSilent: (master) => reported('masterSilent', master),
      masterAnswersAgain: (master) => reported('masterAnswersAgain', master),
    };
  }
}
