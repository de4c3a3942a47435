import type { AcquireRequest, QueueTicket } from '../masters/master.interface.js';
import type { Instant } from '../redlock/clock.js';
import type { Keyspace } from '../settings/keyspace.js';
import { ExclusiveKeys } from './exclusive.js';

// Other shared holders may have the keys at the same time. A request says for how long its call has waited: a writer that came
// before it defers it.
// Protocol 11.6
export class SharedKeys extends ExclusiveKeys {
  constructor(
    keyspace: Keyspace,
    resources: readonly string[],
    // When the call began: an older one is not deferred.
    private readonly began: Instant,
  ) {
    super(keyspace, resources);
  }

  override get isShared(): boolean {
    return true;
  }

  override acquireOrQueue(token: string, ttl: number, since: Instant, queue: QueueTicket | undefined): AcquireRequest {
    const waited = Math.floor(since.monotonic - this.began.monotonic);
    const { keys, writerKeys } = this.names;
    const { monotonic } = since;
    const sharing = { writerKeys, waited };
    return { op: 'acquire', keys, token, ttl, since: monotonic, withdrawn: false, queue, sharing };
  }
}
