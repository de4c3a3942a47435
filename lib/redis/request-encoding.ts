import type { AcquireRequest, MasterRequest } from '../masters/master.interface.js';

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
  if (sharing) return ['join', key, token, text(ttl), ...sharing.writerKeys, text(sharing.waited)];
  const parts = ['take', key, token, text(ttl)];
  if (queue && mayQueue) parts.push(...queue.queues, queue.waiter, text(queue.waited), text(queue.reserveFor));
  return parts;
}

function partsOf(request: MasterRequest, mayQueue: boolean): unknown[] {
  const { op, keys } = request;
  switch (request.op) {
    case 'acquire': {
      const { token, ttl, queue, sharing } = request;
      const parts: unknown[] = [op, keys, token, text(ttl), sharing?.writerKeys ?? false];
      const ticket = mayQueue ? queue : undefined;
      const waited = (sharing ?? ticket)?.waited;
      if (waited !== undefined) parts.push(Math.floor(waited));
      if (ticket) parts.push(ticket.queues, ticket.waiter, ticket.reserveFor);
      return parts;
    }
    case 'pick': {
      const { token, ttl, queue } = request;
      const parts: unknown[] = [op, keys, token, text(ttl)];
      if (queue && mayQueue) parts.push(queue.queues, queue.waiter, Math.floor(queue.waited), queue.reserveFor);
      return parts;
    }
    case 'defer-readers': {
      const { writerKeys, waiter, waited } = request;
      return ['defer_readers', writerKeys, waiter, Math.floor(waited)];
    }
    case 'extend':
      return [op, keys, request.token, text(request.ttl), request.heals ? 1 : 0, request.isShared ? 1 : 0];
    case 'draw': {
      const { token, counters, atLeast, isFirst } = request;
      return [op, keys, token, counters.map(String), atLeast, isFirst ? 1 : 0];
    }
    case 'release':
      return [op, keys, request.token, text(request.keepFor), request.queues, request.isShared ? 1 : 0];
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

// A string, because Lua would convert a number for each command, which is slow.
function text(milliseconds: number): string {
  return String(Math.ceil(milliseconds));
}

// `SET ... NX` sets one key, and no process can wait for it.
export function isPlain(request: MasterRequest): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.queue && !request.sharing;
}
