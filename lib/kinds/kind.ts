import type { Instant } from '../redlock/clock.js';
import type { Primitive } from '../redlock/primitive.js';
import type { AcquireRequest, ExtendRequest, QueueTicket, ReleaseRequest } from '../masters/master.interface.js';
import type { KeyNames } from '../settings/keyspace.js';

// A kind of lock: which keys it has, and how it asks for them.
export interface Kind extends Primitive {
  // Derived when they are needed: most of the time, a lock is only held.
  readonly names: KeyNames;
  readonly isShared: boolean;
  // Counted from 0; `undefined` unless it is a permit.
  readonly slot: number | undefined;
  // As to the other masters, and joins a queue if it is refused.
  acquireOrQueue(token: string, ttl: number, since: Instant, ticket: QueueTicket | undefined): AcquireRequest;
}

// The keys of some resources, for one holder or for several.
export abstract class NamedKeys implements Kind {
  abstract readonly names: KeyNames;
  abstract readonly isShared: boolean;
  abstract readonly slot: number | undefined;

  acquire(token: string, ttl: number, since: Instant): AcquireRequest {
    return this.acquireOrQueue(token, ttl, since, undefined);
  }

  acquireOrQueue(token: string, ttl: number, { monotonic }: Instant, queue: QueueTicket | undefined): AcquireRequest {
    const { keys } = this.names;
    return { op: 'acquire', keys, token, ttl, since: monotonic, withdrawn: false, queue, sharing: undefined };
  }

  extend(token: string, ttl: number, { monotonic }: Instant, heals: boolean): ExtendRequest {
    const { isShared, names } = this;
    return { op: 'extend', keys: names.keys, token, ttl, since: monotonic, withdrawn: false, isShared, heals };
  }

  release(token: string, keepFor: number, life: number): ReleaseRequest {
    const { isShared, names } = this;
    const { keys, queues } = names;
    return { op: 'release', keys, queues, token, keepFor, ttl: life, isShared };
  }
}
