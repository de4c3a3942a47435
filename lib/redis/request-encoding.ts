import type { AcquireRequest, MasterRequest, PickRequest, Sharing } from '../masters/master.interface.js';

// For the script of `scripts/bound-script.ts`. All masters are mostly sent the same requests, so the last result is
// kept.
export class RequestEncoder {
  private requests: readonly MasterRequest[] = [];
  private mayQueue = false;
  private last: readonly string[] = [];

  // Several requests become one JSON string, which costs a server less to parse than as many arguments do. Without
  // `mayQueue`, this process would not receive a notification: then an entry in the queue is useless.
  encode(requests: readonly MasterRequest[], mayQueue: boolean): readonly string[] {
    const { requests: last } = this;
    const isSame = mayQueue === this.mayQueue && requests.length === last.length;
    if (isSame && requests.every((request, i) => request === last[i])) return this.last;
    this.requests = requests;
    this.mayQueue = mayQueue;
    const [alone] = requests;
    this.last = (requests.length === 1 && alone && usual(alone, mayQueue)) || [
      JSON.stringify(requests.map((request) => encoded(request, mayQueue))),
    ];
    return this.last;
  }
}

function encoded(request: MasterRequest, mayQueue: boolean): readonly unknown[] {
  return usual(request, mayQueue) ?? partsOf(request, mayQueue);
}

// The requests of nearly every lock; `undefined` for all others.
function usual(request: MasterRequest, mayQueue: boolean): readonly string[] | undefined {
  const [key] = request.keys;
  if (key === undefined || request.keys.length > 1) return undefined;
  if (request.op === 'release' && request.keepFor === 0)
    return [request.isShared ? 'part' : 'give', key, request.token, ...request.queues];
  if (request.op !== 'acquire') return undefined;
  const { token, ttl, queue, sharing } = request;
  if (sharing && queue && mayQueue) return undefined;
  if (sharing) return ['join', key, token, text(ttl), ...sharing.barriers, text(sharing.waited)];
  const parts = ['take', key, token, text(ttl)];
  if (queue && mayQueue) parts.push(...queue.queues, queue.waiter, text(queue.waited), text(queue.reserveFor));
  return parts;
}

function partsOf(request: MasterRequest, mayQueue: boolean): unknown[] {
  const { op, keys } = request;
  switch (request.op) {
    case 'acquire': {
      const { sharing } = request;
      return sharing ? partsOfSharing(request, sharing, mayQueue) : partsOfAcquisition(request, mayQueue);
    }
    case 'pick':
      return partsOfAcquisition(request, mayQueue);
    case 'raise-barrier': {
      const { barriers, waiter, waited } = request;
      return ['raise_barrier', barriers, waiter, ...(waited === undefined ? [] : [Math.floor(waited)])];
    }
    case 'extend':
      return [
        request.isShared ? 'extend_shared' : op,
        ...[keys, request.token, text(request.ttl), request.heals ? 1 : 0],
      ];
    case 'draw': {
      const { token, counters, atLeast, isFirst } = request;
      return [op, keys, token, counters.map(String), atLeast, isFirst ? 1 : 0];
    }
    case 'release':
      if (request.isShared) return ['release_shared', keys, request.token, request.queues];
      return [op, keys, request.token, text(request.keepFor), request.queues];
    case 'leave': {
      const { waiter, queues, isShared } = request;
      return [op, keys, waiter, queues, isShared ? 1 : 0];
    }
    case 'inspect':
      return [op, keys, request.queues ?? []];
    case 'probe':
      return [op, keys];
    case 'open-state':
    case 'write-state':
    case 'read-state':
      throw new Error(`${op} has a script of its own`);
  }
}

function partsOfSharing(request: AcquireRequest, { barriers, waited }: Sharing, mayQueue: boolean): unknown[] {
  const { keys, token, ttl, queue } = request;
  const parts: unknown[] = ['acquire_shared', keys, token, text(ttl), barriers, Math.floor(waited)];
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter, queue.reserveFor);
  return parts;
}

function partsOfAcquisition(request: AcquireRequest | PickRequest, mayQueue: boolean): unknown[] {
  const { op, keys, token, ttl, queue } = request;
  const parts: unknown[] = [op, keys, token, text(ttl)];
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter, Math.floor(queue.waited), queue.reserveFor);
  return parts;
}

// A string, because Lua would convert a number for each command, which is slow.
function text(milliseconds: number): string {
  return String(Math.ceil(milliseconds));
}

// `SET ... NX` sets one key, and no process can wait for it.
export function isPlain(request: MasterRequest): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.queue && !request.sharing;
}
