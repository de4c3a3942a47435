import { CircuitBreakerMaster } from './circuit-breaker-master.js';
import type { Clock } from '../redlock/clock.js';
import { connectMasters, probeMasters, reopened } from './connect.js';
import type { MasterReport } from '../redlock/errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import type { Keyspace } from '../settings/keyspace.js';
import type { Master } from './master.interface.js';
import type { LockObserver } from '../operate/observer.js';
import type { Settings } from '../settings/settings.js';
import { type RedlockStatus, summarize } from '../operate/status.js';

interface MasterSetOptions {
  readonly masters: readonly Master[];
  readonly keyspace: Keyspace;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly observer: LockObserver;
  // What to do while masters cannot vote: the end of a `QuorumUnavailableError`'s message.
  readonly advice: string | undefined;
  // For keys for which other processes wait.
  readonly noteWaiters: (keys: readonly string[]) => void;
}

// The masters of one lock service: how they are connected, what is known of them, and which of them are one server.
export class MasterSet {
  readonly all: readonly CircuitBreakerMaster[];
  // The run of the server to which each connection leads, the oldest first.
  private readonly runs = new Map<CircuitBreakerMaster, string>();
  private cancelConnect: (() => void) | undefined;

  constructor(private readonly options: MasterSetOptions) {
    const { masters, settings, clock, observer, noteWaiters } = options;
    this.all = masters.map(
      (master) => new CircuitBreakerMaster(master, clock, settings.masterTimeout, observer, noteWaiters),
    );
    // Before any other listener sees the master.
    this.onReady(() => this.excludeTwins());
  }

  // Resolves when each master has connected or failed to do so once.
  async open(): Promise<void> {
    await Promise.all(this.all.map((master) => master.connect()));
  }

  // Resolves when a quorum can vote, with the problems of the other masters. Rejects if none can after `timeout`
  // milliseconds, at once if waiting cannot help, or if a server cannot be a master.
  async connect(timeout: number): Promise<readonly MasterReport[]> {
    const { clock, advice } = this.options;
    const cancelled = (cancel: () => void): void => void (this.cancelConnect = cancel);
    const connecting = connectMasters({ masters: this.all, clock, timeout, advice, cancelled });
    // A server that cannot be a master is reported first: an unavailable quorum is only its consequence.
    await connecting.catch(() => undefined);
    for (const master of this.all) {
      const { fault } = master.identity();
      if (fault === undefined) continue;
      throw new RedlockConfigError('masters', master.name, `must be an independent server: ${fault}`);
    }
    return connecting;
  }

  // Each time a master can take requests, or its votes begin to count.
  onReady(listener: (master: CircuitBreakerMaster) => void): void {
    for (const master of this.all) master.onReady(() => listener(master));
  }

  // As far as they are known: see `MasterIdentity.run`.
  get servers(): readonly string[] {
    return this.all.flatMap((master) => master.identity().run ?? []);
  }

  // With a key that no lock uses, so that an answer, or a missing one, shows in the status.
  ask(): void {
    const request = { op: 'probe', keys: [this.options.keyspace.probe] } as const;
    for (const master of this.all) master.ask(request, () => undefined);
  }

  // Without contacting the masters.
  status(): RedlockStatus {
    return summarize(
      this.options.settings.instance,
      this.all.map((master) => master.status()),
    );
  }

  async probe(): Promise<RedlockStatus> {
    await this.reopened();
    const { keyspace, settings, clock } = this.options;
    return probeMasters(this.all, {
      key: keyspace.probe,
      clock,
      masterTimeout: settings.masterTimeout,
      status: () => this.status(),
    });
  }

  // As `reopened` of each.
  reopened(): Promise<void> | undefined {
    const { clock, settings } = this.options;
    return reopened({ masters: this.all, clock, timeout: settings.masterTimeout });
  }

  async close(): Promise<void> {
    this.cancelConnect?.();
    await Promise.all(this.all.map((master) => master.close()));
  }

  // Each server has one vote, even if several addresses lead to it: of two connections, the later is not used. The earlier
  // one may have granted already.
  // Protocol 8.5
  private excludeTwins(): void {
    for (const master of this.all) {
      const run = master.isConnected ? master.identity().run : undefined;
      if (this.runs.get(master) === run) continue;
      // Behind the others, in the order in which their connections came.
      this.runs.delete(master);
      if (run === undefined) master.exclude(undefined);
      else this.runs.set(master, run);
    }
    const firsts = new Map<string, CircuitBreakerMaster>();
    for (const [master, run] of this.runs) {
      const twin = firsts.get(run);
      if (!twin) firsts.set(run, master);
      master.exclude(twin && `it is the same server as ${twin.name}`); // @mutant later-twin-not-excluded
    }
  }
}
