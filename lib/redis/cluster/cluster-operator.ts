import type { KeyValue, MasterReply } from '../../core/master.interface.js';
import { type OperatorConnection, RedisOperator, type Scan, type ServerOperator } from '../redis-state.js';
import { nameOf } from '../urls.js';
import type { KnownPrimary } from './cluster-map.js';
import type { ClusterNames } from './cluster-names.js';
import { noOwnerOf } from './partition-calls.js';
import type { Topology } from './topology.js';

export class ClusterOperator implements ServerOperator {
  constructor(
    private readonly names: ClusterNames,
    private readonly topology: Topology,
    private readonly problem: () => MasterReply | undefined,
  ) {}

  read(key: string): Promise<KeyValue | MasterReply | null> {
    return this.at(key).read(key);
  }

  async values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply> {
    const found = await Promise.all(keys.map((key) => this.at(key).values([key])));
    const failure = found.find((one): one is MasterReply => 'kind' in one);
    return failure ?? found.flatMap((one) => ('kind' in one ? [] : one));
  }

  revoke(key: string, value: string): Promise<number | MasterReply> {
    return this.at(key).revoke(key, value);
  }

  async scan({ match, take, ...scan }: Scan): Promise<MasterReply | undefined> {
    const { names, topology } = this;
    const ends = [...topology.map.primaries.values()].map((primary) =>
      this.on(primary).scan({
        ...{ ...scan, match: names.patternOf(match) },
        take: (found) => take(found.flatMap((stored) => names.nameOf(stored) ?? [])),
      }),
    );
    return (await Promise.all(ends)).find((end) => end !== undefined);
  }

  private at(key: string): RedisOperator {
    const { names, topology } = this;
    const partition = names.partitionOf(key);
    const problem = this.problem();
    const primary = problem ? undefined : topology.map.primaries.get(topology.map.claimOf(partition)?.owner ?? '');
    if (!primary) return new RedisOperator(without(problem ?? noOwnerOf(partition)));
    return this.on(primary, (name) => names.inPartition(partition, name));
  }

  private on(primary: KnownPrimary, stored?: (name: string) => string): RedisOperator {
    const { announced, address, node } = this.topology.reach(primary);
    const reason = `${nameOf(address ?? announced)}: ${this.topology.fault ?? 'not connected yet'}`;
    return new RedisOperator(node ?? without({ kind: 'unreachable', reason, sent: false }), stored);
  }
}

function without(problem: MasterReply): OperatorConnection {
  return { problem: () => problem, call: () => Promise.resolve(), failure: () => problem };
}
