import { A, at, C, clearKey, clearSeal, endElection, endMove, rename } from './cluster.layout.js';
import { type ClusterOptions, type ClusterWeakening } from './cluster.options.js';
import { type ClusterStep } from './cluster.words.js';

export type EmitStep = (next: Uint8Array, step: ClusterStep, who?: number, other?: number) => void;

/** What the parts of the model of a cluster share. */
export interface ClusterParts {
  readonly options: ClusterOptions;
  readonly weak: ReadonlySet<ClusterWeakening>;
  /** Copies a state into the buffer that steps are made in. */
  readonly copy: (state: Uint8Array) => Uint8Array;
}

/**
 * Which process has the partition, and which nodes know that. The processes that had it one after the other are its
 * claims: each claim has an owner and an epoch, and a node never goes back to an older one.
 */
export class Ownership {
  readonly nodes: readonly number[];

  constructor(private readonly parts: ClusterParts) {
    this.nodes = Array.from({ length: parts.options.primaries + 1 }, (_, node) => node);
  }

  /** The primaries with slots, as a map with this claim shows them. The first one is that of the shard of A and B. */
  electorate(state: Uint8Array, claim: number): number[] {
    let primary = A;
    for (let k = 1; k <= claim; k += 1) if (this.claimant(state, k) !== C) primary = this.claimant(state, k);
    return [primary, ...this.nodes.slice(C)];
  }

  claimant(state: Uint8Array, claim: number): number {
    return state[at.claimant(claim)]!;
  }

  /** The newest claim that a node knows. */
  claim(state: Uint8Array, node: number): number {
    return state[at.claim(node)]!;
  }

  /** Whether a node believes that the partition is its own. */
  owns(state: Uint8Array, node: number): boolean {
    return this.claimant(state, this.claim(state, node)) === node;
  }

  /** The process that made the newest claim. */
  owner(state: Uint8Array): number {
    return this.claimant(state, state[at.last]!);
  }

  /** Whether a process executes what it is asked for the partition. */
  serves(state: Uint8Array, server: number): boolean {
    if (!this.owns(state, server)) return false;
    const { nodeTimeout } = this.parts.options;
    if (server !== A || !nodeTimeout) return true;
    return state[at.paused] === 0 && state[at.isolated]! * 2 < nodeTimeout.ticks * 3;
  }

  /** Whether a process refers requests for absent keys to another one. That ends when it hears of the new owner. */
  isMigratingFrom(state: Uint8Array, server: number): boolean {
    return state[at.source] === server + 1;
  }

  isUnreachable(state: Uint8Array, node: number): boolean {
    return node === A && (state[at.cut] !== 0 || state[at.paused] !== 0);
  }

  learn(next: Uint8Array, node: number, claim: number): void {
    if (claim <= this.claim(next, node)) return;
    const owned = this.owns(next, node);
    next[at.claim(node)] = claim;
    if (!owned) return;
    if (this.isMigratingFrom(next, node)) endMove(next);
    clearKey(next, node);
    clearSeal(next, node);
    // It becomes a replica, whose replid is that of its primary.
    if (node !== C && this.claimant(next, claim) !== C) this.changeReplid(next, node);
  }

  changeReplid(next: Uint8Array, server: number): void {
    if (!this.parts.weak.has('no replid')) rename(next, server);
  }

  addClaim(next: Uint8Array, server: number, raised: number): void {
    const epoch = this.countsEpochs ? raised : 0;
    const before = this.owner(next);
    const last = next[at.last]! + 1;
    next[at.last] = last;
    next[at.claimant(last)] = server;
    next[at.claimEpoch(last)] = epoch;
    next[at.claim(server)] = last;
    next[at.epoch(server)] = Math.max(next[at.epoch(server)]!, epoch);
    next[at.since] = 0;
    endElection(next);
    const { nodeTimeout, voterMapsAreNew } = this.parts.options;
    if (!nodeTimeout && !voterMapsAreNew) return;
    for (const node of this.nodes) {
      if (nodeTimeout ? this.isUnreachable(next, node) : node === before) continue;
      this.learn(next, node, last);
      next[at.epoch(node)] = Math.max(next[at.epoch(node)]!, epoch);
    }
  }

  /** Without views of epochs, all of them stay at zero. */
  get countsEpochs(): boolean {
    return this.parts.options.view !== 'claims' && this.parts.options.view !== 'none';
  }

  /** The epoch under which a primary takes slots without votes. */
  bumped(state: Uint8Array, server: number): number {
    return Math.max(state[at.epoch(server)]!, state[at.claimEpoch(state[at.last]!)]!) + 1;
  }

  /** Counts an event. */
  happen(next: Uint8Array): void {
    next[at.events]! -= 1;
    next[at.since] = 0;
  }
}

/** A part that knows who owns the partition. */
export abstract class ClusterPart {
  protected readonly options: ClusterOptions;
  protected readonly weak: ReadonlySet<ClusterWeakening>;
  protected readonly copy: ClusterParts['copy'];

  constructor(
    parts: ClusterParts,
    protected readonly ownership: Ownership,
  ) {
    this.options = parts.options;
    this.weak = parts.weak;
    this.copy = parts.copy;
  }
}
