import { Redis } from 'ioredis';
import { masterFrom } from '../../lib/redis/master-source.js';
import { startCluster } from '../support/cluster.js';
import { contextOf } from '../support/context.js';
import { masterContract } from './master.contract.js';
import { sharedWaitingContract } from './sharing-waiting.contract.js';
import { sharingContract } from './sharing.contract.js';
import { stateContract } from './state.contract.js';
import { waitingContract } from './waiting.contract.js';

for (const batchPartitions of [false, true]) {
  const kind = batchPartitions ? 'ClusterMaster that batches partitions' : 'ClusterMaster';

  // Without replicas, a primary that is paused stays the owner of its slots.
  const prepare = async () => {
    const cluster = await startCluster({ replicas: 0, nodeTimeout: 60_000 });
    const source = { cluster: cluster.urls, batchPartitions };
    return {
      master: () => masterFrom('masters[0]', source, contextOf({ keyPrefix: '' })),
      pause: () => cluster.nodes.forEach((node) => cluster.pause(node)),
      resume: () => cluster.nodes.forEach((node) => cluster.resume(node)),
      takeDown: async () => {
        await Promise.all(cluster.nodes.map((node) => cluster.kill(node)));
      },
      bringUp: async () => {
        for (const node of cluster.nodes) if (!node.isUp) await cluster.restart(node);
        await cluster.settled();
      },
      end: () => cluster[Symbol.asyncDispose](),
    };
  };

  masterContract(kind, prepare);
  stateContract(kind, prepare);
  sharingContract(kind, prepare);

  // A process that has been notified by one primary may not listen at another one yet.
  const prepareWaiters = async () => {
    const cluster = await startCluster({ primaries: 1, replicas: 0, nodeTimeout: 60_000 });
    const source = { cluster: cluster.urls, batchPartitions };
    // Receives everything that is published, but is not one of the waiters.
    const monitor = new Redis(cluster.nodes[0]?.port ?? 0, '127.0.0.1');
    await monitor.psubscribe('*');
    const end = async (): Promise<void> => {
      monitor.disconnect();
      await cluster[Symbol.asyncDispose]();
    };
    return { master: () => masterFrom('masters[0]', source, contextOf({ keyPrefix: '' })), end };
  };

  waitingContract(kind, prepareWaiters);
  sharedWaitingContract(kind, prepareWaiters);
}
