import type { ClusterMaster } from './cluster-master.js';

/** Recognizes one cluster under several names: its nodes know one another. Protocol 12.10. */
export class ClusterTwins {
  private readonly clusters: ClusterMaster[] = [];

  add(cluster: ClusterMaster): void {
    this.clusters.push(cluster);
  }

  /** The same for all clusters of this service that have a node in common; `undefined` while no node is known. */
  idOf(cluster: ClusterMaster): string | undefined {
    const { ids } = cluster;
    const first = this.clusters.find((other) => [...other.ids].some((id) => ids.has(id)));
    const [id] = first?.ids ?? [];
    return id;
  }
}
