import { type FakeServer, Process, threeServers } from './guarded-servers.js';
import { TestClock } from './test-clock.js';

/** What answers at an address: another server, or the same one in another state. */
export type Place = Pick<FakeServer, 'run' | 'replid' | 'fields' | 'ahead' | 'replicas'>;

export function placeOf({ run, replid, fields, ahead, replicas }: FakeServer): Place {
  return { run, replid, fields, ahead, replicas };
}

export interface GuardStageOptions {
  readonly count?: number;
  /** Clusters beside the servers. */
  readonly clusters?: number;
  readonly isDurable?: boolean;
}

/** A process with its guard on servers that have voted for long, and whose answers show their clocks to it. */
export class GuardStage {
  readonly clock = new TestClock();
  readonly servers: ReturnType<typeof threeServers>;
  readonly process: Process;

  constructor({ count = 3, clusters = 0, isDurable = false }: GuardStageOptions = {}) {
    this.servers = threeServers(this.clock).slice(0, count) as ReturnType<typeof threeServers>;
    for (const server of this.servers) server.mark();
    this.process = new Process(this.clock, this.servers);
    for (const link of this.process.links) link.isDurable = isDurable;
    for (let i = 0; i < clusters; i++) this.process.guard.addCluster({ votes: () => true, isNew: () => false });
  }

  /** The process receives the time of a server with an answer. Returns whether the answer may count. */
  sample(index: number): boolean {
    return this.process.guard.sampled(this.identity(index), this.clock.read(), this.servers[index]!.time);
  }

  identity(index: number) {
    return this.process.links[index]!.identity!;
  }

  /** These servers answer once in each round, and some milliseconds pass after that. */
  async rounds(count: number, pause: number, indexes = this.servers.map((_, index) => index)): Promise<void> {
    for (let round = 0; round < count; round++) {
      for (const index of indexes) this.sample(index);
      await this.clock.advance(pause);
    }
  }

  /** All servers that answer do so once at the end of each of so many seconds. */
  async receive(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await this.clock.advance(1_000);
      this.servers.forEach((server, index) => !server.isDown && this.sample(index));
    }
    await this.clock.settle();
  }

  /** The address of a server leads to another place. */
  lead(server: FakeServer, place: Place): void {
    Object.assign(server, place);
    this.process.connect(server);
  }

  /** The clocks of this process stand still. */
  standStill(milliseconds: number): void {
    for (const server of this.servers) server.ahead += milliseconds;
  }

  /** Milliseconds of standstills that the process has noticed. */
  get lagged(): number {
    return this.process.lags.reduce((sum, lag) => sum + lag, 0);
  }
}
