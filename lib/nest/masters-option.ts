import { RedlockConfigError } from '../core/errors.js';
import type { Master } from '../core/master.interface.js';
import { MemoryMaster } from '../memory/memory-master.js';
import { ClusterTwins } from '../redis/cluster/cluster-twins.js';
import { isClient, masterFrom, refuseTwins } from '../redis/master-source.js';
import type { RedisMasterContext } from '../redis/redis-master-context.interface.js';
import { redactAddress } from '../redis/url-parts.js';
import type { MasterSource } from './redlock-module-options.interface.js';

const MASTER: readonly (keyof Master)[] = [
  ...(['ask', 'connect', 'problem', 'identity', 'reconnect', 'onReady', 'listen', 'close'] as const),
];

/**
 * Creates the masters that the option `masters` names.
 *
 * @throws {RedlockConfigError} for the first invalid one
 */
export function createMasters(sources: unknown, context: RedisMasterContext): Master[] {
  if (sources === 'memory') return [new MemoryMaster(context.clock)];
  const count = countOf(sources);
  if (count === undefined) {
    // A string may be an address with a password.
    const shown = typeof sources === 'string' ? redactAddress(sources) : sources;
    throw new RedlockConfigError(
      'masters',
      shown,
      `must be a list of at least one master, or 'memory'${adviceFor(sources)}`,
    );
  }
  const clusters = new ClusterTwins();
  // Not by `map`, which skips the holes of an array.
  const masters = Array.from({ length: count }, (_, index) =>
    createMaster(`masters[${index}]`, (sources as MasterSource[])[index] as MasterSource, {
      ...context,
      clusters,
      isAlone: count === 1,
    }),
  );
  refuseTwins('masters', masters);
  return masters;
}

/** What to write instead of a client that is not in a list. */
export function adviceFor(sources: unknown): string {
  return hasMethods(sources, ['duplicate']) && isClient(sources) ? '; a client goes into a list, such as [client]' : '';
}

/** Number of masters; `undefined` unless `sources` is a non-empty array. */
export function countOf(sources: unknown): number | undefined {
  try {
    return Array.isArray(sources) && sources.length > 0 ? sources.length : undefined;
  } catch {
    return undefined;
  }
}

function createMaster(option: string, source: MasterSource, context: RedisMasterContext): Master {
  if (!hasMethods(source, ['ask'])) return masterFrom(option, source, context);
  if (hasMethods(source, MASTER) && typeof Reflect.get(source, 'name') === 'string') return source as Master;
  throw new RedlockConfigError(option, source, `must have a name and the methods ${MASTER.join(', ')}`);
}

/** Whether the value is an object with these methods. */
export function hasMethods(value: unknown, methods: readonly string[]): value is object {
  try {
    if (typeof value !== 'object' || value === null) return false;
    return methods.every((method) => typeof Reflect.get(value, method) === 'function');
  } catch {
    return false;
  }
}
