import type { Clock } from '../core/clock.js';
import type { MasterRequest, ReplyCallback } from '../core/master.interface.js';
import { MemoryMaster } from '../memory/memory-master.js';

/**
 * Replaces the masters with `enabled: false`. Each key contains the token of its acquisition, so no acquisition is ever
 * refused. Everything else, fencing tokens included, works as on a master in memory.
 */
export class OpenMaster extends MemoryMaster {
  constructor(clock: Clock) {
    super(clock, 'none');
  }

  override ask(request: MasterRequest, reply: ReplyCallback): void {
    super.ask(
      'token' in request ? { ...request, keys: request.keys.map((key) => request.token + key) } : request,
      reply,
    );
  }

  override onReady(): void {
    // This master is always ready; it would have to keep a listener for each acquisition.
  }
}
