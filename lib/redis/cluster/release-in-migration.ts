import type { PendingRequest } from '../request-queue.js';
import { RELEASE_ALONE } from '../scripts/release.lua.js';
import type { ClusterNode } from './cluster-node.js';
import type { Topology } from './topology.js';

/**
 * Releases the keys of a slot that is being moved: they are on two nodes, and one key can be released where it is, but not
 * together with its queue.
 * Protocol 12.4.
 *
 * @param asked what the node refused, of which only the releases are carried out
 */
export function releaseOneByOne(
  topology: Topology,
  { node, asked }: { readonly node: ClusterNode; readonly asked: readonly PendingRequest[] },
): void {
  for (const { request } of asked) {
    if (request.op !== 'release') continue;
    const { keys, token, keepFor } = request;
    for (const key of keys) {
      const parameters = [RELEASE_ALONE, 1, key, token, Math.ceil(keepFor)];
      node.call('eval', parameters).catch((error: unknown) => follow(topology, String(error), parameters));
    }
  }
}

/** Carries out a release at the node to which the key was moved. Nothing else follows a key. */
function follow(topology: Topology, message: string, release: (string | number)[]): void {
  const [, address = ''] = /\bASK \d+ (\S+)/.exec(message) ?? [];
  const target = topology.nodeAnnouncedAs(address);
  if (!target?.isConnected) return;
  target.call('asking', []).catch(() => undefined);
  target.call('eval', release).catch(() => undefined);
}
