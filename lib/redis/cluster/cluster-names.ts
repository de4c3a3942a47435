import { BARRIER, Keyspace, NUL } from '../../core/keyspace.js';
import { partitionOf, TAGS } from './cluster-map.js';

/** Reserved names, after the prefix: their kind, and what belongs to it before the resource. */
const RESERVED = new RegExp(`^${NUL}(?:key:|queue:|state:|permits:|permit:\\d+:)`);

/**
 * The names that the library uses on a cluster. A tag after the prefix puts all names of one partition into one slot:
 * `lock:{a2}invoice:42`.
 * Protocol 12.1.
 */
export class ClusterNames {
  private readonly keyspace: Keyspace;
  private readonly seals: string[] = [];

  constructor(private readonly keyPrefix: string) {
    this.keyspace = new Keyspace(keyPrefix);
  }

  /** The partition of a name, which depends on the resource in it alone. */
  partitionOf(name: string): number {
    const rest = name.slice(this.keyPrefix.length);
    if (!rest.startsWith(NUL)) return partitionOf(rest);
    const resource = rest.replace(RESERVED, '');
    return partitionOf(resource.endsWith(BARRIER) ? resource.slice(0, -BARRIER.length) : resource);
  }

  /** The name as it is stored on the cluster. */
  inPartition(partition: number, name: string): string {
    const { length } = this.keyPrefix;
    return `${this.keyPrefix}{${TAGS[partition] ?? ''}}${name.slice(length)}`;
  }

  /** The name without its tag. */
  withoutTag(stored: string): string {
    const { length } = this.keyPrefix;
    return this.keyPrefix + stored.slice(stored.indexOf('}', length) + 1);
  }

  /** The queue of a stored key. */
  queueOf(partition: number, stored: string): string {
    const resource = this.keyspace.resourceOf(this.withoutTag(stored));
    return this.inPartition(partition, this.keyspace.queueOf(resource));
  }

  /** The seal of a partition: the hash that says to which process its data belongs. */
  sealOf(partition: number): string {
    return (this.seals[partition] ??= this.inPartition(partition, `${this.keyPrefix}${NUL}seal`));
  }

  /** The hash of the fencing counters of a partition. */
  countersOf(partition: number): string {
    return this.inPartition(partition, `${this.keyPrefix}${NUL}fences`);
  }

  /** The key that a probe writes. */
  probeOf(partition: number): string {
    return this.inPartition(partition, `${this.keyPrefix}${NUL}probe`);
  }
}
