import type { AcquireRequest, Request } from '../core/master.interface.js';

/** What a command is made of. */
export type Parameters = (string | number)[];

/** What stands for a number or a name that there is none of. */
const NONE = '';

/**
 * Appends a request in the form in which the script of `scripts.ts` reads it: operation, number of keys, keys, and what
 * else the operation needs.
 *
 * @param mayQueue whether this process would hear that it is next; there is no use in waiting for that otherwise
 */
export function encode(parameters: Parameters, request: Request, mayQueue: boolean): void {
  const { op, keys } = request;
  parameters.push(op, keys.length, ...keys);
  switch (request.op) {
    case 'acquire':
      encodeAcquisition(parameters, request, mayQueue);
      break;
    case 'extend':
      parameters.push(request.token, Math.ceil(request.ttl));
      if (request.fence) parameters.push(request.fence.token, ...request.fence.fields);
      else parameters.push(NONE);
      break;
    case 'confirm':
      parameters.push(request.token, request.fence.token, ...request.fence.fields);
      break;
    case 'release':
      parameters.push(request.token, Math.ceil(request.keepFor), ...request.queues);
      break;
    case 'leave':
      parameters.push(request.waiter, ...request.queues);
      break;
    case 'inspect':
  }
}

function encodeAcquisition(parameters: Parameters, request: AcquireRequest, mayQueue: boolean): void {
  const { token, ttl, fence, queue } = request;
  parameters.push(token, Math.ceil(ttl));
  if (fence) parameters.push(fence.floor, ...fence.fields);
  else parameters.push(NONE);
  if (queue && mayQueue) parameters.push(queue.waiter, Math.floor(queue.waited), ...queue.queues);
  else parameters.push(NONE);
}

/** What `SET ... NX` can do: it neither tells the remaining time nor draws a fencing token, nor takes several keys. */
export function isPlain(request: Request): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.explain && !request.fence;
}
