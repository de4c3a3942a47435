import { setTimeout as sleep } from 'node:timers/promises';
import { type ClusterNode, type NodeLine, type TestCluster } from '../../support/cluster.js';
import { ownLine, owns } from '../../support/cluster-lines.js';
import { moveSlot } from '../../support/cluster-moves.js';
import { Dice } from '../dice.js';
import { ON_WORKER, type World } from '../faults.js';
import type { PlannedFault } from '../plan.js';
import type { ShardFault } from './kinds.js';
import { SHARDS } from './plan.js';

const SLOTS_OF_PARTITION = 64;
const PARTITIONS = 256;
/** How often the end of a move is tried: other nodes may be down at that time. */
const MOST_TRIES = 50;
/** Milliseconds between two tries. */
const PACE = 100;

/** What the faults are done to. */
export interface Sharded {
  readonly cluster: TestCluster;
  /** Slots of the resources that the workers lock. */
  readonly slots: readonly number[];
}

type Shard = readonly ClusterNode[];
type OnShard = (primary: ClusterNode, sharded: Sharded, fault: PlannedFault<ShardFault>) => Promise<boolean>;

const killed: OnShard = async (primary, { cluster }, { lasts }) => {
  await cluster.kill(primary);
  await sleep(lasts);
  await cluster.restart(primary);
  return true;
};

const stopped: OnShard = async (primary, { cluster }, { lasts }) => {
  cluster.pause(primary);
  await sleep(lasts);
  cluster.resume(primary);
  return true;
};

const ON_SHARD = {
  'primary killed, back at once and empty': killed,
  'primary killed, back after a failover': killed,
  'shard killed, back empty': async (primary, { cluster }, { lasts }) => {
    const nodes = shardsOf(cluster).find((shard) => shard.includes(primary)) ?? [];
    await Promise.all(nodes.map((node) => cluster.kill(node)));
    await sleep(lasts);
    await Promise.all(nodes.map((node) => cluster.restart(node)));
    return true;
  },
  'all primaries killed, back empty': killed,
  'failover, graceful': (primary, { cluster }) => failover(cluster, primary, []),
  'failover, forced': (primary, { cluster }) => failover(cluster, primary, ['FORCE']),
  'primary stopped': stopped,
  'primary stopped beyond a failover': stopped,
  'primary stopped, failover forced': async (primary, { cluster }, { lasts }) => {
    cluster.pause(primary);
    const began = await failover(cluster, primary, ['FORCE']);
    await sleep(lasts);
    cluster.resume(primary);
    return began;
  },
  FLUSHALL: async (primary, { cluster }) => {
    await cluster.flush(primary);
    return true;
  },
  'bus cut': async (primary, { cluster }, { lasts, size }) => {
    const others = cluster.nodes.filter((node) => node !== primary);
    const replicas = others.filter((node) => !shardsOf(cluster).some(([one]) => one === node));
    // Alone, with its own replica, or with the replica of another one.
    cluster.partition([primary, ...new Dice(1 + size * 2 ** 31).shuffle(replicas).slice(0, Math.floor(size * 3))]);
    await sleep(lasts);
    cluster.heal();
    return true;
  },
} as const satisfies Partial<Record<ShardFault, OnShard>>;

/** Carries out a fault and heals it. Resolves with `false` if the state of the cluster did not allow it. */
export async function carryOutOn(sharded: Sharded, world: World, fault: PlannedFault<ShardFault>): Promise<boolean> {
  const { kind, targets } = fault;
  if (kind === 'worker stopped' || kind === 'worker killed') {
    await Promise.all(targets.map((worker) => ON_WORKER[kind](world, worker, fault)));
    return true;
  }
  const shards = targets.filter((target) => target < SHARDS);
  const primaries = await Promise.all(shards.map((shard) => primaryOf(sharded.cluster, shard)));
  const found = primaries.filter((primary) => primary !== undefined);
  if (found.length < shards.length) return false;
  if (kind === 'slot moved') return move(sharded, found as [ClusterNode, ClusterNode], fault);
  const done = await Promise.all(found.map((primary) => ON_SHARD[kind](primary, sharded, fault)));
  return done.includes(true);
}

/** A primary and its replica. Either can be the primary later. */
function shardsOf({ nodes }: TestCluster): readonly Shard[] {
  return Array.from({ length: SHARDS }, (_, shard) => nodes.filter((_node, index) => index % SHARDS === shard));
}

async function primaryOf(cluster: TestCluster, shard: number): Promise<ClusterNode | undefined> {
  const nodes = shardsOf(cluster)[shard]?.filter(({ isUp }) => isUp) ?? [];
  const lines = await Promise.all(nodes.map((node) => ownLine(node)));
  const own = lines.filter(({ isPrimary, ranges }) => isPrimary && ranges.length > 0);
  const [newest] = own.sort((one, other) => other.epoch - one.epoch);
  return newest && cluster.node(newest.id);
}

/** Begins a failover; whether and when it ends is up to the cluster. */
async function failover(cluster: TestCluster, primary: ClusterNode, mode: readonly string[]): Promise<boolean> {
  const replica = shardsOf(cluster)
    .find((shard) => shard.includes(primary))
    ?.find((node) => node !== primary && node.isUp);
  if (!replica) return false;
  // Refused by a replica that has not found its primary yet.
  return replica.command('CLUSTER', 'FAILOVER', ...mode).then(
    () => true,
    () => false,
  );
}

/** Moves the partition of a resource, or another one if the first node has none of them. */
async function move(
  { cluster, slots }: Sharded,
  [from, to]: readonly [ClusterNode, ClusterNode],
  { lasts, size }: PlannedFault<ShardFault>,
): Promise<boolean> {
  const dice = new Dice(1 + size * 2 ** 31);
  const own = await ownLine(from);
  const used = slots.filter((slot) => owns(own, slot));
  const slot = used.length > 0 ? dice.pick(used) : anySlotOf(own, dice);
  await moveSlot({ slot, from, to, nodes: [], steps: ['importing', 'migrating'] });
  await sleep(lasts * size);
  const keys = dice.shuffle((await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1_000)) as string[]);
  for (const key of keys) {
    await moveSlot({ slot, from, to, nodes: [], steps: ['keys'], keys: [key] });
    await sleep((lasts * (1 - size)) / keys.length);
  }
  let refusal: unknown;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const nodes = cluster.nodes.filter(({ isUp }) => isUp);
    refusal = await moveSlot({ slot, from, to, nodes, steps: ['keys', 'node'] }).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refusal === undefined) return true;
    await sleep(PACE);
  }
  throw new Error(`Slot ${slot} could not be moved`, { cause: refusal });
}

function anySlotOf({ ranges }: NodeLine, dice: Dice): number {
  const partitions = [...Array(PARTITIONS).keys()].map((partition) => partition * SLOTS_OF_PARTITION);
  return dice.pick(partitions.filter((slot) => ranges.some(([first, last]) => first <= slot && slot <= last)));
}
