import type { Clock, Instant } from './clock.js';
import type { PendingReleases } from './pending-releases.js';
import type { Primitive } from './primitive.js';
import type { SendRequest } from './quorum.js';
import type { Reply, RoundRequest, Server } from './server.js';
import type { Timing } from './timing.js';

// The same for all locks of one process.
export interface Rules {
  readonly masters: readonly Server[];
  readonly clock: Clock;
  readonly timing: Timing;
  readonly releases: PendingReleases;
}

// How an attempt asks the masters.
export interface Plan {
  readonly primitive: Primitive;
  // Read before the first request is sent and after all waiting: from then on, the validity counts.
  readonly since: Instant;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  // Absent if all masters are asked the same, and at once.
  readonly first?: First | undefined;
  // The master that learns last of the release.
  readonly last?: Server | undefined;
}

// A master that is asked before the others. These are asked only if it grants: one of several attempts gets on.
export interface First {
  readonly master: Server;
  // What it is asked.
  readonly request: (token: string) => RoundRequest;
  // It has granted.
  readonly granted?: ((answer: Reply) => void) | undefined;
  // What asks each of the masters, if the others need not wait for its answer.
  readonly together?: ((toFirst: RoundRequest, toOthers: RoundRequest) => SendRequest) | undefined;
}
