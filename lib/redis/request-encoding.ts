import type { AcquireRequest } from '../core/master.interface.js';
import type { ServerRequest } from './beat-request.interface.js';

/**
 * Writes requests as the script of `scripts.ts` reads them. What one master is sent the others are mostly sent, too, so
 * the last ones are kept.
 */
export class RequestEncoder {
  private requests: readonly ServerRequest[] = [];
  private mayQueue = false;
  private last: readonly string[] = [];

  /**
   * As few arguments as possible: several requests make one JSON text, which costs a server less to take apart than as
   * many arguments do. One that comes alone, and is of the usual kind, needs no taking apart.
   *
   * @param mayQueue whether this process would hear that it is next; there is no use in waiting for that otherwise
   */
  encode(requests: readonly ServerRequest[], mayQueue: boolean): readonly string[] {
    const { requests: last } = this;
    const isSame = mayQueue === this.mayQueue && requests.length === last.length;
    if (isSame && requests.every((request, i) => request === last[i])) return this.last;
    this.requests = requests;
    this.mayQueue = mayQueue;
    const [alone] = requests;
    this.last = (requests.length === 1 && alone && usual(alone, mayQueue)) || [
      JSON.stringify(requests.map((request) => usual(request, mayQueue) ?? partsOf(request, mayQueue))),
    ];
    return this.last;
  }
}

/** What the script does for nearly every lock; `undefined` for everything else. */
function usual(request: ServerRequest, mayQueue: boolean): readonly string[] | undefined {
  const [key] = request.keys;
  if (key === undefined || request.keys.length > 1) return undefined;
  if (request.op === 'release' && request.keepFor === 0) return ['give', key, request.token, ...request.queues];
  if (request.op !== 'acquire') return undefined;
  const { token, ttl, queue } = request;
  const parts = ['take', key, token, text(ttl)];
  if (queue && mayQueue) parts.push(...queue.queues, queue.waiter, text(queue.waited));
  return parts;
}

/** Operation, keys, and what the operation needs. */
function partsOf(request: ServerRequest, mayQueue: boolean): unknown[] {
  const { op, keys } = request;
  switch (request.op) {
    case 'acquire':
      return partsOfAcquisition(request, mayQueue);
    case 'extend':
      return [op, keys, request.token, text(request.ttl)];
    case 'draw': {
      const { token, counters, atLeast, isFirst } = request;
      return [op, keys, token, counters.map(String), atLeast, isFirst ? 1 : 0];
    }
    case 'beat':
      return [op, keys, request.ttl, request.lengthens ? 1 : 0, request.factor, request.known];
    case 'release':
      return [op, keys, request.token, text(request.keepFor), request.queues];
    case 'leave':
      return [op, keys, request.waiter, request.queues];
    case 'inspect':
    case 'probe':
      return [op, keys];
  }
}

function partsOfAcquisition(request: AcquireRequest, mayQueue: boolean): unknown[] {
  const { op, keys, token, ttl, queue } = request;
  const parts: unknown[] = [op, keys, token, text(ttl)];
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter, Math.floor(queue.waited));
  return parts;
}

/** Lua would turn a number into text again for each command, and that is slow. */
function text(milliseconds: number): string {
  return String(Math.ceil(milliseconds));
}

/** What `SET ... NX` can do: it neither tells the remaining time nor takes several keys. */
export function isPlain(request: ServerRequest): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.explain;
}
