import type {
  AcquireRequest,
  DrawRequest,
  ExtendRequest,
  MasterRequest,
  PickRequest,
  Sharing,
} from '../core/master.interface.js';
import type { Announcement } from './guard/server-record.js';

// A heartbeat: the server checks its marker, returns its time and records an announced ttl. The restart guard sends it
// in addition to the votes.
export interface BeatRequest extends Announcement {
  readonly op: 'beat';
  readonly keys: readonly string[];
  // Milliseconds of quarantine for each millisecond of a ttl.
  readonly factor: number;
}

export type ServerRequest = MasterRequest | BeatRequest;

export function isNewLock(request: ServerRequest): request is AcquireRequest | PickRequest | DrawRequest {
  return request.op === 'acquire' || request.op === 'pick' || request.op === 'draw';
}

// Whether a grant makes the process a holder for some time.
export function grantsKeys(request: ServerRequest): request is AcquireRequest | PickRequest | ExtendRequest {
  return request.op === 'acquire' || request.op === 'pick' || request.op === 'extend';
}

export function isVote(request: ServerRequest): boolean {
  return grantsKeys(request) || request.op === 'draw';
}

// Whether the script compares the marker or the seal before it carries out the request.
export function isCompared({ op }: ServerRequest): boolean {
  return op !== 'release' && op !== 'leave' && op !== 'inspect' && op !== 'raise-barrier';
}

// For the script of `scripts/bound-script.ts`. All masters are mostly sent the same requests, so the last result is
// kept.
export class RequestEncoder {
  private requests: readonly ServerRequest[] = [];
  private mayQueue = false;
  private last: readonly string[] = [];

  // Several requests become one JSON string, which costs a server less to parse than as many arguments do. Without
  // `mayQueue`, this process would not receive a notification: then an entry in the queue is useless.
  encode(requests: readonly ServerRequest[], mayQueue: boolean): readonly string[] {
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

export interface RequestGroup {
  // `history` is empty if that of the data is not to be compared.
  readonly known: readonly [marker: string, nonce: string, history: string, counters: string];
  readonly requests: readonly ServerRequest[];
}

export function encodeGroups(groups: readonly RequestGroup[], mayQueue: boolean): string {
  return JSON.stringify({
    groups: groups.map(({ known, requests }) => [...known, requests.map((request) => encoded(request, mayQueue))]),
  });
}

function encoded(request: ServerRequest, mayQueue: boolean): readonly unknown[] {
  return usual(request, mayQueue) ?? partsOf(request, mayQueue);
}

// The requests of nearly every lock; `undefined` for all others.
function usual(request: ServerRequest, mayQueue: boolean): readonly string[] | undefined {
  const [key] = request.keys;
  if (key === undefined || request.keys.length > 1) return undefined;
  if (request.op === 'release' && request.keepFor === 0)
    return [request.isShared ? 'part' : 'give', key, request.token, ...request.queues];
  if (request.op !== 'acquire') return undefined;
  const { token, ttl, queue, sharing } = request;
  if (sharing && queue && mayQueue) return undefined;
  if (sharing) return ['join', key, token, text(ttl), ...sharing.barriers, text(sharing.waited)];
  const parts = ['take', key, token, text(ttl)];
  if (queue && mayQueue) parts.push(...queue.queues, queue.waiter, text(queue.waited));
  return parts;
}

function partsOf(request: ServerRequest, mayQueue: boolean): unknown[] {
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
      return [request.isShared ? 'extend_shared' : op, keys, request.token, text(request.ttl)];
    case 'draw': {
      const { token, counters, atLeast, isFirst } = request;
      return [op, keys, token, counters.map(String), atLeast, isFirst ? 1 : 0];
    }
    case 'beat':
      return [op, keys, request.ttl, request.lengthens ? 1 : 0, request.factor, request.known];
    case 'release':
      if (request.isShared) return ['release_shared', keys, request.token, request.queues];
      return [op, keys, request.token, text(request.keepFor), request.queues];
    case 'leave': {
      const { waiter, queues, isShared, nextWaited } = request;
      const next = nextWaited === undefined ? [] : [Math.floor(nextWaited)];
      return [op, keys, waiter, queues, isShared ? 1 : 0, ...next];
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
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter);
  return parts;
}

function partsOfAcquisition(request: AcquireRequest | PickRequest, mayQueue: boolean): unknown[] {
  const { op, keys, token, ttl, queue } = request;
  const parts: unknown[] = [op, keys, token, text(ttl)];
  if (queue && mayQueue) parts.push(queue.queues, queue.waiter, Math.floor(queue.waited));
  return parts;
}

// A string, because Lua would convert a number for each command, which is slow.
function text(milliseconds: number): string {
  return String(Math.ceil(milliseconds));
}

// `SET ... NX` sets one key, and no process can wait for it.
export function isPlain(request: ServerRequest): request is AcquireRequest {
  return request.op === 'acquire' && request.keys.length === 1 && !request.queue && !request.sharing;
}
