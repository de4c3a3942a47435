import type { AcquireRequest, Request } from '../core/master.interface.js';

const NO_FIELDS: readonly number[] = Object.freeze([]);

/**
 * Writes requests as the script of `scripts.ts` reads them. What one master is sent the others are mostly sent, too, so
 * the last text is kept.
 */
export class RequestEncoder {
  private requests: readonly Request[] = [];
  private mayQueue = false;
  private text = '[]';

  /** @param mayQueue whether this process would hear that it is next; there is no use in waiting for that otherwise */
  encode(requests: readonly Request[], mayQueue: boolean): string {
    const { requests: last } = this;
    const isSame = mayQueue === this.mayQueue && requests.length === last.length;
    if (isSame && requests.every((request, i) => request === last[i])) return this.text;
    this.requests = requests;
    this.mayQueue = mayQueue;
    this.text = JSON.stringify(requests.map((request) => partsOf(request, mayQueue)));
    return this.text;
  }
}

/** Operation, keys, and what the operation needs. */
function partsOf(request: Request, mayQueue: boolean): unknown[] {
  const { op, keys } = request;
  switch (request.op) {
    case 'acquire':
      return partsOfAcquisition(request, mayQueue);
    case 'extend': {
      const { token, ttl, fence } = request;
      return [op, keys, token, Math.ceil(ttl), fence?.fields ?? NO_FIELDS, fence?.token ?? 0];
    }
    case 'confirm':
      return [op, keys, request.token, 0, request.fence.fields, request.fence.token];
    case 'release':
      return [op, keys, request.token, Math.ceil(request.keepFor), request.queues];
    case 'leave':
      return [op, keys, request.waiter, request.queues];
    case 'inspect':
      return [op, keys];
  }
}

function partsOfAcquisition(request: AcquireRequest, mayQueue: boolean): unknown[] {
  const { op, keys, token, ttl, fence, queue } = request;
  const parts = [op, keys, token, Math.ceil(ttl), fence?.fields ?? NO_FIELDS, fence?.floor ?? 0];
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter, Math.floor(queue.waited));
  return parts;
}

/** What `SET ... NX` can do: it neither tells the remaining time nor draws a fencing token, nor takes several keys. */
export function isPlain(request: Request): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.explain && !request.fence;
}
