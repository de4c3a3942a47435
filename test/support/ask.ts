import { WRITER } from '../../lib/settings/keyspace.js';
import { countersOf } from '../../lib/fencing/fencing-token.js';
import type {
  AcquireRequest,
  MasterReply,
  DrawRequest,
  ExtendRequest,
  InspectRequest,
  Master,
  ReleaseRequest,
  MasterRequest,
  PickRequest,
  QueueTicket,
} from '../../lib/masters/master.interface.js';

/** The beginning of a round for which the age of the connection does not matter. */
export const ANY_CONNECTION = Infinity;

/** Sends a request to a master and resolves with its answer. A second answer throws. */
export function ask(master: Master, request: MasterRequest): Promise<MasterReply> {
  let answered = false;
  return new Promise((resolve) => {
    master.ask(request, (answer) => {
      if (answered) throw new Error(`${master.name} answered twice`);
      answered = true;
      resolve(answer);
    });
  });
}

export function acquiring(
  keys: readonly string[],
  token: string,
  options: Partial<AcquireRequest> = {},
): AcquireRequest {
  return { op: 'acquire', keys, token, ttl: 60_000, since: ANY_CONNECTION, withdrawn: false, ...options };
}

export function extending(keys: readonly string[], token: string, ttl = 60_000): ExtendRequest {
  return { op: 'extend', keys, token, ttl, since: ANY_CONNECTION, withdrawn: false };
}

export function drawing(keys: readonly string[], token: string, options: Partial<DrawRequest> = {}): DrawRequest {
  const counters = countersOf(keys);
  return { op: 'draw', keys, token, counters, atLeast: 1, isFirst: true, since: ANY_CONNECTION, ...options };
}

export function releasing(keys: readonly string[], token: string, keepFor = 0): ReleaseRequest {
  return { op: 'release', keys, queues: keys.map((key) => `queue:${key}`), token, keepFor, ttl: 60_000 };
}

export function inspecting(...keys: string[]): InspectRequest {
  return { op: 'inspect', keys };
}

export function writerKeysOf(keys: readonly string[]): readonly string[] {
  return keys.map((key) => `queue:${key}${WRITER}`);
}

interface SharingOptions {
  readonly ttl?: number;
  readonly waited?: number;
  readonly queue?: QueueTicket | undefined;
}

export function sharing(keys: readonly string[], token: string, options: SharingOptions = {}): AcquireRequest {
  const { waited = 0, ...others } = options;
  return acquiring(keys, token, { ...others, sharing: { writerKeys: writerKeysOf(keys), waited } });
}

export function picking(keys: readonly string[], token: string, options: Partial<PickRequest> = {}): PickRequest {
  return { op: 'pick', keys, token, ttl: 60_000, since: ANY_CONNECTION, withdrawn: false, ...options };
}
