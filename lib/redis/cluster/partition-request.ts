import { BARRIER } from '../../core/keyspace.js';
import type { ServerRequest } from '../beat-request.interface.js';
import type { PendingRequest } from '../request-queue.js';

/** A request with the partition that its keys are in. */
export interface PartitionedRequest extends PendingRequest {
  readonly partition: number;
}

/** Whether a grant makes the process a holder for some time, or is a token. */
export function isVote({ op }: ServerRequest): boolean {
  return op === 'acquire' || op === 'pick' || op === 'extend' || op === 'draw';
}

/** Whether the script compares the seal before it carries out the request. */
export function isChecked({ op }: ServerRequest): boolean {
  return op !== 'release' && op !== 'leave' && op !== 'inspect' && op !== 'want';
}

/** The secrets of the requests, which no message may contain. */
export function tokensOf(asked: readonly PendingRequest[]): string[] {
  return asked.flatMap(({ request }) => ('token' in request ? [request.token] : []));
}

/**
 * All names that the requests use: a cluster checks that they are in one slot, and services may refuse others.
 * Protocol 12.3.
 */
export function keysOf(requests: readonly ServerRequest[], others: readonly string[]): readonly string[] {
  const names = others.filter((name) => name !== '');
  for (const request of requests) {
    names.push(...request.keys);
    const ticket = 'queue' in request ? request.queue : undefined;
    for (const queue of ticket?.queues ?? ('queues' in request ? request.queues : undefined) ?? []) {
      // What wakes a waiter looks at the barrier, too.
      names.push(queue, queue + BARRIER);
    }
    if ('sharing' in request && request.sharing) names.push(...request.sharing.barriers);
    if ('barriers' in request) names.push(...request.barriers);
    if ('entry' in request) names.push(request.entry);
  }
  // Requests of one turn may have names in common.
  return requests.length === 1 ? names : [...new Set(names)];
}
