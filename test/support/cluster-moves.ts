import { ownLine } from './cluster-lines.js';
import type { ClusterNode } from './cluster-node.js';

export type MoveStep = 'importing' | 'migrating' | 'keys' | 'node' | 'stable';

export interface MoveOptions {
  /** @default all steps but `stable`, in this order: `importing`, `migrating`, `keys`, `node` */
  readonly steps?: readonly MoveStep[];
  /** Owner before the move; needed for steps after `node`. @default the present owner */
  readonly from?: ClusterNode;
  /** What the step `keys` moves, one MIGRATE each, in this order. @default all keys of the slot */
  readonly keys?: readonly string[];
}

interface Move extends MoveOptions {
  readonly slot: number;
  readonly from: ClusterNode;
  readonly to: ClusterNode;
  /** All nodes that are up. */
  readonly nodes: readonly ClusterNode[];
}

export async function moveSlot(move: Move): Promise<void> {
  const { slot, from, to, steps = ['importing', 'migrating', 'keys', 'node'] } = move;
  for (const step of steps) {
    if (step === 'importing') await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    if (step === 'migrating') await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    if (step === 'keys') await migrate(move);
    if (step === 'node') await assign(move);
    if (step === 'stable') {
      for (const node of [from, to]) await node.command('CLUSTER', 'SETSLOT', slot, 'STABLE');
    }
  }
}

async function migrate(move: Move): Promise<void> {
  const { slot, from, to } = move;
  const keys = move.keys ?? ((await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1_000_000)) as string[]);
  for (const key of keys) await from.command('MIGRATE', '127.0.0.1', to.server.port, key, 0, 10_000);
}

// The target first: only the node that imports a slot raises its epoch with the claim.
async function assign({ slot, from, to, nodes }: Move): Promise<void> {
  await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  for (const node of nodes) {
    if (node === to || !(await ownLine(node)).isPrimary) continue;
    await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id).catch((error: unknown) => {
      // A primary that gave its last slot away follows the new owner, possibly before this command arrives.
      if (node !== from || !String(error).includes('only with masters')) throw error;
    });
  }
}
