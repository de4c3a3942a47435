import type { AcquireRequest, Request } from '../core/master.interface.js';
import type { Script, Scripts } from './scripts.js';

/** How a request is put to a server. */
export interface Call {
  readonly script: Script;
  /** What the script finds in KEYS. */
  readonly keys: readonly string[];
  /** What the script finds in ARGV. */
  readonly parameters: readonly (string | number)[];
}

/** What a marker must be for a grant to count. */
export interface Mark {
  readonly marker: string;
  readonly nonce: string;
}

/**
 * @param mark absent if nobody looks at it
 * @param mayQueue whether this process would hear that it is next; there is no use in waiting for that otherwise
 */
export function callOf(request: Request, scripts: Scripts, mark: Mark | undefined, mayQueue: boolean): Call {
  const { keys } = request;
  switch (request.op) {
    case 'acquire':
      return acquireCall(request, scripts, mark, mayQueue);
    case 'extend': {
      const { fence } = request;
      const parameters = [request.token, Math.ceil(request.ttl), keys.length];
      if (!fence) return { script: scripts.extend, keys, parameters };
      return {
        script: scripts.extendFenced,
        keys: [...keys, fence.hash],
        parameters: [...parameters, fence.token, ...fence.fields],
      };
    }
    case 'confirm': {
      const { hash, token, fields } = request.fence;
      const parameters = [request.token, '', keys.length, token, ...fields];
      return { script: scripts.confirm, keys: [...keys, hash], parameters };
    }
    case 'release': {
      const parameters = [request.token, Math.ceil(request.keepFor)];
      return { script: scripts.release, keys: [...keys, ...request.queues], parameters };
    }
    case 'leave':
      return { script: scripts.leave, keys: [...keys, ...request.queues], parameters: [request.waiter] };
    case 'inspect':
      return { script: scripts.inspect, keys, parameters: [] };
  }
}

function acquireCall(
  { keys, token, ttl, queue, fence }: AcquireRequest,
  scripts: Scripts,
  mark: Mark | undefined,
  mayQueue: boolean,
): Call {
  const waits = queue !== undefined && mayQueue;
  const script = fence
    ? scripts[waits ? 'acquireOrQueueFenced' : 'acquireFenced']
    : scripts[waits ? 'acquireOrQueue' : 'acquire'];
  const allKeys = [...keys];
  const parameters = [token, Math.ceil(ttl), keys.length];
  if (waits) {
    allKeys.push(...queue.queues);
    parameters.push(queue.waiter, Math.floor(queue.waited));
  }
  if (mark) {
    allKeys.push(mark.marker);
    parameters.push(mark.nonce);
  }
  if (fence) {
    allKeys.push(fence.hash);
    parameters.push(fence.floor, ...fence.fields);
  }
  return { script, keys: allKeys, parameters };
}
