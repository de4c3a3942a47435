import { GRANTED, type KeyValue, type MasterReply, type OperatorMaster } from '../../core/master.interface.js';
import { RedisOperator } from '../redis-operator.js';
import type { ClusterNames } from './cluster-names.js';
import type { Topology } from './topology.js';

/** The actions of operators on a cluster. */
export class ClusterOperator implements OperatorMaster {
  constructor(
    private readonly names: ClusterNames,
    private readonly topology: Topology,
  ) {}

  read(key: string): Promise<KeyValue | MasterReply | null> {
    const { operator, stored } = this.at(key);
    return operator.read(stored);
  }

  async values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply> {
    const found = await Promise.all(
      keys.map((key) => {
        const { operator, stored } = this.at(key);
        return operator.values([stored]);
      }),
    );
    const failure = found.find((one): one is MasterReply => 'kind' in one);
    return failure ?? found.flatMap((one) => ('kind' in one ? [] : one));
  }

  revoke(key: string, value: string): Promise<number | MasterReply> {
    const { operator, stored } = this.at(key);
    return operator.revoke(stored, value);
  }

  private at(key: string): { readonly operator: RedisOperator; readonly stored: string } {
    const partition = this.names.partitionOf(key);
    const node = this.topology.ownerOf(partition);
    const missing: MasterReply = { kind: 'unreachable', reason: 'its owner is not known', sent: false };
    const operator = new RedisOperator({
      problem: () => (node ? node.problem() : missing),
      evaluate: (script, keys, args) =>
        node ? node.call('eval', [script, keys.length, ...keys, ...args]) : Promise.resolve(GRANTED),
      failure: (error, tokens) => node?.failure(error, tokens) ?? missing,
    });
    return { operator, stored: this.names.inPartition(partition, key) };
  }
}
