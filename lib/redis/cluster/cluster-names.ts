import { BARRIER, Keyspace, NUL } from '../../core/keyspace.js';
import { literally } from '../permissions.js';
import { partitionOf, TAGS } from './cluster-map.js';

const RESERVED = new RegExp(`^${NUL}(?:key:|queue:|state:|permits:|permit:\\d+:)`);

// A tag after the prefix puts all names of one partition into one slot: `lock:{a2}invoice:42`.
// Protocol 12.1
export class ClusterNames {
  private readonly keyspace: Keyspace;
  private readonly seals: string[] = [];

  constructor(private readonly keyPrefix: string) {
    this.keyspace = new Keyspace(keyPrefix);
  }

  partitionOf(name: string): number {
    const rest = name.slice(this.keyPrefix.length);
    if (!rest.startsWith(NUL)) return partitionOf(rest);
    const resource = rest.replace(RESERVED, '');
    return partitionOf(resource.endsWith(BARRIER) ? resource.slice(0, -BARRIER.length) : resource);
  }

  inPartition(partition: number, name: string): string {
    const { length } = this.keyPrefix;
    return `${this.keyPrefix}{${TAGS[partition] ?? ''}}${name.slice(length)}`;
  }

  withoutTag(stored: string): string {
    const { length } = this.keyPrefix;
    return this.keyPrefix + stored.slice(stored.indexOf('}', length) + 1);
  }

  // `undefined` for a key of another program.
  nameOf(stored: string): string | undefined {
    const name = this.withoutTag(stored);
    return this.inPartition(this.partitionOf(name), name) === stored ? name : undefined;
  }

  // Of SCAN, for all partitions.
  patternOf(match: string): string {
    const { length } = literally(this.keyPrefix);
    return `${match.slice(0, length)}{*}${match.slice(length)}`;
  }

  queueOf(partition: number, stored: string): string {
    const resource = this.keyspace.resourceOf(this.withoutTag(stored));
    return this.inPartition(partition, this.keyspace.queueOf(resource));
  }

  // The hash that says to which process the data of the partition belongs.
  sealOf(partition: number): string {
    return (this.seals[partition] ??= this.inPartition(partition, `${this.keyPrefix}${NUL}seal`));
  }

  countersOf(partition: number): string {
    return this.inPartition(partition, `${this.keyPrefix}${NUL}fences`);
  }

  probeOf(partition: number): string {
    return this.inPartition(partition, `${this.keyPrefix}${NUL}probe`);
  }
}
