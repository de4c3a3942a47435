import { masterFrom } from '../../lib/redis/master-source.js';
import { contextOf } from '../support/context.js';
import { startCluster } from '../support/cluster.js';
import { masterContract, type MasterStage } from './master.contract.js';
import { sharingContract } from './sharing.contract.js';
import { stateContract } from './state.contract.js';

// Without replicas, a primary that is paused stays the owner of its slots. No waiter is woken, so there is no contract of
// waiting.
async function stage(): Promise<MasterStage> {
  const cluster = await startCluster({ replicas: 0, nodeTimeout: 60_000 });
  const { nodes } = cluster;
  return {
    master: () => masterFrom('masters[0]', { cluster: cluster.urls }, contextOf({ keyPrefix: '' })),
    pause: () => nodes.forEach((node) => node.pause()),
    resume: () => nodes.forEach((node) => node.resume()),
    takeDown: async () => {
      await Promise.all(nodes.map((node) => node.kill()));
    },
    bringUp: async () => {
      for (const node of nodes) if (!node.isUp) await node.restart();
      await cluster.settled();
    },
    end: () => cluster[Symbol.asyncDispose](),
  };
}

for (const contract of [masterContract, stateContract, sharingContract]) contract('ClusterMaster', stage);
