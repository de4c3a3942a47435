import { Redlock } from '../../lib/core/redlock.js';
import type { Settings } from '../../lib/core/settings.js';
import { RequestEncoder } from '../../lib/redis/request-encoding.js';
import { RedisMaster } from '../../lib/redis/redis-master.js';
import { RestartGuard } from '../../lib/redis/restart-guard.js';
import type { Chance } from './engine/chance.js';
import type { SimProcess } from './engine/process.js';
import type { Scheduler } from './engine/scheduler.js';
import type { Endpoint } from './network/endpoint.js';
import { Link } from './network/link.js';
import { SimClient } from './network/sim-client.js';

/** One process of an application, with the library in it. */
export class SimNode {
  readonly redlock: Redlock;
  readonly links: readonly Link[];
  /** When each token was drawn, in true time: just before its attempt. */
  readonly drawnAt = new Map<string, number>();
  private readonly masters: readonly RedisMaster[];
  private readonly clients: SimClient[] = [];
  /** Sees what the masters say of their data; `undefined` where it is off. */
  readonly guard: RestartGuard | undefined;

  constructor(
    readonly process: SimProcess,
    readonly settings: Settings,
    scheduler: Scheduler,
    private readonly endpoints: readonly Endpoint[],
    chance: Chance,
    latency: number,
  ) {
    this.links = endpoints.map(() => new Link(scheduler, chance, latency));
    const random = {
      fraction: () => chance.fraction(),
      token: () => {
        const token = chance.token();
        this.drawnAt.set(token, scheduler.now);
        return token;
      },
    };
    const surroundings = { clock: process, random, observer: {} };
    const clockLags = (milliseconds: number): void => this.redlock.shorten(milliseconds);
    this.guard = settings.restartGuard
      ? new RestartGuard({ ...surroundings, settings, clockLags, instance: process.name })
      : undefined;
    const encoder = new RequestEncoder();
    this.masters = endpoints.map((endpoint, index) => {
      const link = this.links[index] as Link;
      const client = new SimClient({ process, endpoint, link, scheduler }, (copy) => this.clients.push(copy));
      this.clients.push(client);
      return new RedisMaster(endpoint.name, client, { ...surroundings, settings, encoder, guard: this.guard }, settings.durable);
    });
    this.redlock = new Redlock(this.masters, settings, { ...surroundings, witness: this.guard });
  }

  /** Whether this process has talked to this run of a server. */
  knows(endpoint: Endpoint, run: string): boolean {
    return this.masters[endpoint.index]?.identity().run === run;
  }

  /** Whether this process is finding out who answers there. */
  isRecognizing(endpoint: Endpoint): boolean {
    return this.clients.some((client) => client.isRecognizing(endpoint));
  }

  /** Ends without a word. */
  die(): void {
    this.process.die();
    for (const client of this.clients) client.abandon();
  }
}
