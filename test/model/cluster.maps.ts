import { at } from './cluster.layout.js';
import { ClusterPart } from './cluster.ownership.js';

/** A map that a client may use: the owner of the partition, and the epoch that belongs to that, if epochs count. */
export interface ClusterMap {
  readonly claim: number;
  readonly epoch: number;
}

/** Protocol 12.7: which maps a client takes, and which views confirm them. */
export class Maps extends ClusterPart {
  /** Whether a view that is sent now can show that the owner in the map was not replaced before. */
  canConfirm(state: Uint8Array, { claim, epoch }: ClusterMap): boolean {
    const nodes = this.ownership.electorate(state, claim);
    if (this.asksOwner && this.ownership.claim(state, this.ownership.claimant(state, claim)) !== claim) return false;
    const agree = nodes.filter((node) => {
      if (this.ownership.countsEpochs && state[at.epoch(node)]! > epoch) return false;
      return !this.comparesClaims || this.agrees(state, node, claim);
    });
    return agree.length * 2 > nodes.length;
  }

  /** Protocol 12.7: the process itself knows before the others that it serves under another claim. */
  private get asksOwner(): boolean {
    return this.options.claimInViews === true && !this.weak.has('views compare the claim, but not that of the owner');
  }

  private get comparesClaims(): boolean {
    return this.options.view === 'claims' || this.options.view === 'epoch and claims';
  }

  private agrees(state: Uint8Array, node: number, claim: number): boolean {
    const known = this.ownership.claim(state, node);
    if (known <= claim) return true;
    return this.weak.has('a view compares the owner only') && this.isSameOwner(state, known, claim);
  }

  private isSameOwner(state: Uint8Array, one: number, other: number): boolean {
    return this.ownership.claimant(state, one) === this.ownership.claimant(state, other);
  }

  /** The maps that are newer than this one, and that a client may use. */
  newer(state: Uint8Array, map: ClusterMap): ClusterMap[] {
    if (this.ownership.countsEpochs) {
      return this.ofMajority(state).filter(({ claim, epoch }) => {
        return claim >= map.claim && epoch >= map.epoch && (claim > map.claim || epoch > map.epoch);
      });
    }
    const maps: ClusterMap[] = [];
    for (let claim = map.claim + 1; claim <= state[at.last]!; claim += 1) {
      if (this.isKnown(state, claim)) maps.push({ claim, epoch: 0 });
    }
    return maps;
  }

  /**
   * Whether enough nodes know a claim for a client to use it: so many of the primaries other than the claimant that each
   * majority, of this map or of an older one, contains one of them.
   * Protocol 12.7.
   */
  private isKnown(state: Uint8Array, claim: number): boolean {
    const nodes = this.ownership.electorate(state, claim);
    const knows = (node: number): boolean => {
      const known = this.ownership.claim(state, node);
      if (known >= claim) return true;
      const ownerIsEnough = this.weak.has('a seal is written when the others name the owner, under any config epoch');
      return ownerIsEnough && this.isSameOwner(state, known, claim);
    };
    if (
      this.options.view === 'none' ||
      this.weak.has('a seal is written on the word of one node (the map in place of the epoch)')
    ) {
      return nodes.some(knows);
    }
    if (this.weak.has('a seal is written on the word of a majority with the owner in it')) {
      return nodes.filter(knows).length * 2 > nodes.length;
    }
    const others = nodes.filter((node) => node !== this.ownership.claimant(state, claim));
    const enough = Math.min(others.length, nodes.length - Math.floor(nodes.length / 2));
    return others.filter(knows).length >= enough;
  }

  /** A majority answers one epoch, and the newest claim among its maps is taken. */
  private ofMajority(state: Uint8Array): ClusterMap[] {
    const maps: ClusterMap[] = [];
    for (let claim = 0; claim <= state[at.last]!; claim += 1) {
      const nodes = this.ownership.electorate(state, claim);
      for (const first of nodes) {
        if (this.ownership.claim(state, first) !== claim) continue;
        const epoch = state[at.epoch(first)]!;
        const alike = nodes.filter((node) => {
          return state[at.epoch(node)] === epoch && this.ownership.claim(state, node) <= claim;
        });
        if (alike.length * 2 <= nodes.length) continue;
        const newest = Math.max(state[at.claimEpoch(claim)]!, ...alike.map((node) => state[at.other(node)]!));
        if (this.options.view !== 'newest config epoch' || newest === epoch) maps.push({ claim, epoch });
      }
    }
    return maps;
  }
}
