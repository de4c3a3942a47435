import { type LockLostError, majorityHolder, type MasterReport } from '../../lib/core/errors.js';
import type { AcquisitionProgress, LockObserver } from '../../lib/core/observer.js';
import type { Lease, LeaseContext } from '../../lib/core/lease.js';
import { Redlock } from '../../lib/core/redlock.js';
import type { Settings } from '../../lib/core/settings/settings.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { RedisMaster } from '../../lib/redis/redis-master.js';
import { RestartGuard } from '../../lib/redis/guard/restart-guard.js';
import type { Chance } from './engine/chance.js';
import type { SimProcess } from './engine/process.js';
import type { Scheduler } from './engine/scheduler.js';
import type { Endpoint } from './network/endpoint.js';
import { Link } from './network/link.js';
import { SimClient } from './network/sim-client.js';

/** What one process starts with. */
export interface NodePlan {
  readonly process: SimProcess;
  /** Its index among all processes. */
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

/** What a process reports. */
export interface NodeListener {
  readonly reported: (event: keyof LockObserver, words: string) => void;
  readonly lost: (node: SimNode, error: LockLostError) => void;
  /** A lock has ended, and no work had begun under it. */
  readonly unused: () => void;
  readonly quarantined: (node: SimNode, master: string, reason: string, milliseconds: number) => void;
  readonly stoodStill: (node: SimNode, milliseconds: number) => void;
}

/** One process of an application that uses the library. */
export class SimNode {
  readonly redlock: Redlock;
  readonly process: SimProcess;
  readonly settings: Settings;
  readonly index: number;
  /** The masters in its list. */
  readonly addresses: readonly Endpoint[];
  /** By the number of the endpoint. */
  readonly links: readonly Link[];
  /** When the secret part of each token was drawn, in true time: just before its attempt. */
  private readonly drawnAt = new Map<string, number>();
  /** Whether it has released everything and ended. */
  hasLeft = false;
  /** The resources of each operation that was granted a lock which ended before its work began. */
  readonly unused = new Set<readonly string[]>();
  /** Of all acquisitions that are over, as its observer saw them, in milliseconds. */
  readonly waits = { waited: 0, taken: 0 };
  /** An observer of acquisitions looks at each lock before its work begins, which the library does not do without one. */
  readonly isMeasured: boolean;
  /** How long it had locks, in milliseconds of its clock. */
  held = 0;
  /** Whether masters have named this process to one of its own calls. */
  wasNamed = false;
  private readonly masters = new Map<Endpoint, RedisMaster>();
  private readonly clients: SimClient[] = [];
  /** Observes the state of the masters' data; `undefined` if it is off. */
  readonly guard: RestartGuard | undefined;

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
    const clockLags = (milliseconds: number): void => this.redlock.noteStandstill(milliseconds);
    this.guard = settings.restartGuard
      ? new RestartGuard({ settings, clockLags, instance: process.name, ...surroundings })
      : undefined;
    const encoder = new RequestEncoder();
    this.addresses = order.map((number) => endpoints[number] as Endpoint);
    for (const endpoint of this.addresses) {
      const link = this.links[endpoint.index] as Link;
      const client = new SimClient({ process, endpoint, link, scheduler }, (copy) => this.clients.push(copy));
      this.clients.push(client);
      const context = { settings, encoder, guard: this.guard, ...surroundings };
      this.masters.set(endpoint, new RedisMaster(endpoint.name, client, context, settings.durable));
    }
    const named = { ...settings, instance: process.name };
    this.redlock = new Redlock([...this.masters.values()], named, { witness: this.guard, ...surroundings });
    const leases: LeaseContext = this.redlock['leases'];
    const { ended } = leases;
    const noteEnd = (lease: Lease): void => {
      this.held += process.read().monotonic - lease.acquiredAt.monotonic;
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

  /** Whether this process has communicated with this run of a server. */
  knows(endpoint: Endpoint, run: string): boolean {
    return this.masters.get(endpoint)?.identity().run === run;
  }

  /** Whether this process is currently identifying the server at the endpoint. */
  isRecognizing(endpoint: Endpoint): boolean {
    return this.clients.some((client) => client.isRecognizing(endpoint));
  }

  /** Ends without cleaning up. */
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

  noteRefusal(answers: readonly MasterReport[]): void {
    this.wasNamed ||= majorityHolder(answers)?.instance === this.process.name;
  }

  private observerFor({ reported, lost, quarantined, stoodStill }: NodeListener): LockObserver {
    const add = ({ waited, taken }: AcquisitionProgress): void => {
      this.waits.waited += waited;
      this.waits.taken += taken;
    };
    return {
      ...(this.isMeasured && { acquiring: () => ({ granted: add, failed: (_, progress) => add(progress) }) }),
      clientClockLagged: (milliseconds) => stoodStill(this, milliseconds),
      lockLost: (error) => lost(this, error),
      masterQuarantined: (master, reason, milliseconds) => {
        reported('masterQuarantined', reason);
        quarantined(this, master, reason, milliseconds);
      },
      masterRefused: (_, reason) => reported('masterRefused', reason),
      masterVotesAgain: (master) => reported('masterVotesAgain', master),
      masterSilent: (master) => reported('masterSilent', master),
      masterAnswersAgain: (master) => reported('masterAnswersAgain', master),
    };
  }
}
