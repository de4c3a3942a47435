// Locks on a real cluster: where their keys are, and what its primaries grant meanwhile.
import { QuorumUnavailableError } from '../../lib/core/errors.js';
import type { LockObserver } from '../../lib/core/observer.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { partitionOf, TAGS } from '../../lib/redis/cluster/cluster-map.js';
import type { RedisMasterSource } from '../../lib/redis/master-source.js';
import { type ClusterNode, ownLine, owns } from './cluster.js';
import type { Viewpoint } from './cluster-viewpoint.js';
import { OPTIONS } from './guarded.js';
import { Contender } from './redlocks.js';

/** In milliseconds. */
export const TTL = 2_000;
/** The restart guard keeps partitions from voting for TTL and less than two seconds more. */
export const SETTINGS = { ...OPTIONS, ttl: TTL, maxTtl: TTL, restartGuard: true };
export const UNGUARDED = { ...SETTINGS, restartGuard: false };
/** For what takes a failover and the wait of the guard, on a busy machine. */
export const PATIENT = { wait: '40s' } as const;

/** A cluster, or what one client sees of it. */
type View = Pick<Viewpoint, 'urls'> & Partial<Pick<Viewpoint, 'natMap'>>;

export function sourceOf({ urls, natMap }: View): RedisMasterSource {
  return { cluster: [...urls], ...(natMap && { natMap }) };
}

/** A contender whose only master is the cluster, or the view that a viewpoint has of it. */
export function contenderOn(
  view: View,
  options: RedlockOptions = SETTINGS,
  observer?: LockObserver,
): Promise<Contender> {
  return Contender.on([sourceOf(view)], options, observer);
}

/** The slot of all names of a resource. */
export function slotOf(resource: string): number {
  return 64 * partitionOf(resource);
}

/** The key of a resource as it is stored. */
export function keyOf(resource: string): string {
  return `lock:{${TAGS[partitionOf(resource)]}}${resource}`;
}

/** The stored keys in the slot of a resource that a node has. */
export async function keysAt(node: ClusterNode, resource: string): Promise<string[]> {
  return (await node.command('CLUSTER', 'GETKEYSINSLOT', slotOf(resource), 100)) as string[];
}

export function queueOf(resource: string): string {
  return `lock:{${TAGS[partitionOf(resource)]}}\0queue:${resource}`;
}

export function sealOf(resource: string): string {
  return `lock:{${TAGS[partitionOf(resource)]}}\0seal`;
}

/** Resources of different partitions, all of which a primary owns. */
export async function resourcesOn(node: ClusterNode, count: number): Promise<string[]> {
  const own = await ownLine(node);
  const found = new Map<number, string>();
  for (let i = 0; i < 10_000 && found.size < count; i++) {
    const slot = slotOf(`r${i}`);
    if (owns(own, slot) && !found.has(slot)) found.set(slot, `r${i}`);
  }
  if (found.size < count) throw new Error(`Only ${found.size} partitions belong to ${node.id}`);
  return [...found.values()];
}

export async function resourceOn(node: ClusterNode): Promise<string> {
  const [resource = ''] = await resourcesOn(node, 1);
  return resource;
}

/** Resolves when the partition of each resource votes. */
export async function allGranted(contender: Contender, resources: readonly string[]): Promise<void> {
  for (const resource of resources) await (await contender.acquire(resource, TTL, PATIENT)).release();
}

/** Locks resources one after the other, with one attempt each, until it is ended. */
export class Traffic implements AsyncDisposable {
  grants = 0;
  /** Why masters refused, without timeouts: a busy machine causes those. */
  readonly refusals: string[] = [];
  private isOver = false;
  private readonly running: Promise<void>;

  constructor(
    private readonly contender: Contender,
    private readonly resources: readonly string[],
  ) {
    this.running = this.run();
  }

  /** Resolves when what is under way has ended. */
  end(): Promise<void> {
    this.isOver = true;
    return this.running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  private async run(): Promise<void> {
    for (let i = 0; !this.isOver; i++) {
      const resource = this.resources[i % this.resources.length] ?? '';
      try {
        const lock = await this.contender.acquire(resource, TTL, { wait: 0 });
        this.grants++;
        await lock.release();
      } catch (error) {
        const answers = error instanceof QuorumUnavailableError ? error.answers : [];
        const isSlow = answers.some(({ answer }) => answer === undefined || answer.kind === 'timeout');
        if (!isSlow) this.refusals.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
