import { type Claim, isSameClaim, type KnownPrimary, type NodeView, PARTITIONS } from './node-view.js';

const FOREIGN = 'its nodes belong to several clusters: give the nodes of one cluster, and start anew';

/** The owner of each partition, as the primaries know it. */
export class ClusterMap {
  /** Primaries that have slots, by id. */
  primaries: ReadonlyMap<string, KnownPrimary> = new Map();
  /** Primaries that were named while too few of them had answered: other nodes may have taken their places. */
  candidates: readonly KnownPrimary[] = [];
  /** Why no answer counts any more; `undefined` if the nodes know one another. */
  fault: string | undefined;
  /** Number of primaries that have slots. */
  private size = 0;
  private readonly claims: (Claim | undefined)[] = Array.from({ length: PARTITIONS });
  /** Number of primaries other than the owner that knew the claim of each partition in a round that confirmed it. */
  private readonly others: number[] = Array.from({ length: PARTITIONS }, () => 0);

  /** @param asksMajority whether a claim needs a majority of the primaries; otherwise the newest one is taken */
  constructor(private readonly asksMajority: boolean) {}

  /** The claim of a partition; `undefined` while its owner is unknown. */
  claimOf(partition: number): Claim | undefined {
    return this.claims[partition];
  }

  /** Partitions of one owner. */
  partitionsOf(owner: string): readonly number[] {
    return this.claims.flatMap((claim, partition) => (claim?.owner === owner ? [partition] : []));
  }

  /**
   * Whether so many primaries other than the owner know its claim that each majority has one of them. The old and the new
   * owner of a shard are one seat, so a majority with the owner in it is not enough.
   * Protocol 12.7.
   */
  maySeal(partition: number): boolean {
    const { size } = this;
    return size <= 1 || (this.others[partition] ?? 0) >= size - Math.floor(size / 2);
  }

  /**
   * Learns what nodes answered in one round.
   *
   * @returns the partitions whose claims are confirmed, and those whose claims have changed
   */
  learn(views: readonly NodeView[]): { readonly confirmed: ReadonlySet<number>; readonly changed: readonly number[] } {
    const confirmed = new Set<number>();
    const changed: number[] = [];
    if (!areAcquainted(views)) this.fault = FOREIGN;
    if (this.fault !== undefined) return { confirmed, changed };
    const voters = this.asksMajority ? votersIn(views) : views;
    const size = Math.max(0, ...voters.map(({ primaries }) => primaries.length));
    const majority = this.asksMajority ? Math.floor(size / 2) + 1 : 1;
    const isMajority = voters.length >= majority;
    this.candidates = isMajority ? [] : [...primariesIn(views).values()];
    if (!isMajority) return { confirmed, changed };
    this.primaries = primariesIn(voters);
    this.size = size;
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const claim = this.claimIn(voters, partition, majority);
      if (!claim) continue;
      confirmed.add(partition);
      const isKnown = isSameClaim(this.claims[partition], claim);
      // What a node knows only grows, so earlier rounds count as long as the claim is the same.
      const before = isKnown ? (this.others[partition] ?? 0) : 0;
      const others = voters.filter(({ self, claims }) => self !== claim.owner && isSameClaim(claims[partition], claim));
      this.others[partition] = Math.max(before, others.length);
      if (isKnown) continue;
      this.claims[partition] = { owner: claim.owner, epoch: claim.epoch };
      changed.push(partition);
    }
    return { confirmed, changed };
  }

  /** The newest claim that enough nodes know. */
  private claimIn(views: readonly NodeView[], partition: number, majority: number): Claim | undefined {
    let newest: Claim | undefined;
    for (const { claims } of views) {
      const claim = claims[partition];
      if (!claim || (newest && claim.epoch <= newest.epoch)) continue;
      const known = views.filter((view) => isSameClaim(view.claims[partition], claim)).length;
      if (known >= majority) newest = claim;
    }
    return newest;
  }
}

/** Whether the nodes know one another, if only by way of others. Nodes without a primary that they know do not matter. */
function areAcquainted(views: readonly NodeView[]): boolean {
  let strangers = views.filter(({ primaries }) => primaries.length > 0);
  const known = new Set(strangers[0]?.ids);
  for (let isGrowing = true; isGrowing && strangers.length > 0;) {
    const remaining = strangers.filter(({ ids }) => !ids.some((id) => known.has(id)));
    for (const { ids } of strangers.filter((view) => !remaining.includes(view))) for (const id of ids) known.add(id);
    isGrowing = remaining.length < strangers.length;
    strangers = remaining;
  }
  return strangers.length === 0;
}

/** The views of primaries, one of each: one node may be reached under two addresses. */
function votersIn(views: readonly NodeView[]): readonly NodeView[] {
  const voters = new Map(views.map((view) => [view.self, view]));
  return [...voters.values()].filter(({ primaries, self }) => primaries.some(({ owner }) => owner === self));
}

/** Each primary as the node with the newest epoch for it knows it. */
function primariesIn(views: readonly NodeView[]): ReadonlyMap<string, KnownPrimary> {
  const found = new Map<string, KnownPrimary>();
  for (const { primaries } of views) {
    for (const primary of primaries) {
      const known = found.get(primary.owner);
      if (!known || known.epoch < primary.epoch) found.set(primary.owner, primary);
    }
  }
  return found;
}
