import { A, C, type ClusterLayout } from './cluster.layout.js';
import { type ClusterOptions } from './cluster.options.js';
import { type ModelStep } from './cluster.steps.js';

export type EmitStep = (next: Uint8Array, step: ModelStep, node?: number, other?: number) => void;

/** What the parts of the model of a cluster share. */
export interface ClusterParts {
  readonly options: ClusterOptions;
  readonly at: ClusterLayout;
  /** Copies a state into the buffer that steps are made in. */
  readonly copy: (state: Uint8Array) => Uint8Array;
}

/**
 * Which process has the partition, and which nodes know that. The processes that had it one after the other are its
 * claims: each claim has an owner and an epoch, and a node never goes back to an older one.
 */
export class Ownership {
  readonly nodes: readonly number[];
  private readonly options: ClusterOptions;
  private readonly at: ClusterLayout;

  constructor({ options, at }: ClusterParts) {
    this.options = options;
    this.at = at;
    this.nodes = Array.from({ length: at.nodes }, (_, node) => node);
  }

  /** The primaries with slots, as a map with this claim shows them. The first one is that of the shard of A and B. */
  electorate(state: Uint8Array, claim: number): number[] {
    let primary = A;
    for (let k = 1; k <= claim; k += 1) if (this.claimant(state, k) !== C) primary = this.claimant(state, k);
    return [primary, ...this.nodes.slice(C)];
  }

  claimant(state: Uint8Array, claim: number): number {
    return state[this.at.claimant(claim)]!;
  }

  /** The newest claim that a node knows. */
  claim(state: Uint8Array, node: number): number {
    return state[this.at.claim(node)]!;
  }

  /** Whether a node believes that the partition is its own. */
  owns(state: Uint8Array, node: number): boolean {
    return this.claimant(state, this.claim(state, node)) === node;
  }

  /** The process that made the newest claim. */
  owner(state: Uint8Array): number {
    return this.claimant(state, state[this.at.last]!);
  }

  /** Whether a process executes what it is asked for the partition. */
  serves(state: Uint8Array, server: number): boolean {
    if (!this.owns(state, server)) return false;
    const { nodeTimeout } = this.options;
    if (server !== A || !nodeTimeout) return true;
    return state[this.at.paused] === 0 && state[this.at.isolated]! * 2 < nodeTimeout.ticks * 3;
  }

  /** Whether a process refers requests for absent keys to another one. That ends when it hears of the new owner. */
  isMigratingFrom(state: Uint8Array, server: number): boolean {
    return state[this.at.source] === server + 1;
  }

  isUnreachable(state: Uint8Array, node: number): boolean {
    return node === A && (state[this.at.cut] !== 0 || state[this.at.paused] !== 0);
  }

  learn(next: Uint8Array, node: number, claim: number): void {
    const { at } = this;
    if (claim <= this.claim(next, node)) return;
    const owned = this.owns(next, node);
    next[at.claim(node)] = claim;
    if (!owned) return;
    if (this.isMigratingFrom(next, node)) at.endMove(next);
    at.clearKey(next, node);
    at.clearSeal(next, node);
    // It becomes a replica, whose replid is that of its primary.
    if (node !== C && this.claimant(next, claim) !== C) this.changeReplid(next, node);
  }

  changeReplid(next: Uint8Array, server: number): void {
    if (!this.options.without?.includes('no replid')) this.at.rename(next, server);
  }

  addClaim(next: Uint8Array, server: number, raised: number): void {
    const { at } = this;
    const epoch = this.countsEpochs ? raised : 0;
    const before = this.owner(next);
    const last = next[at.last]! + 1;
    next[at.last] = last;
    next[at.claimant(last)] = server;
    next[at.claimEpoch(last)] = epoch;
    next[at.claim(server)] = last;
    next[at.epoch(server)] = Math.max(next[at.epoch(server)]!, epoch);
    next[at.since] = 0;
    at.endElection(next);
    const { nodeTimeout, voterMapsAreNew } = this.options;
    if (!nodeTimeout && !voterMapsAreNew) return;
    for (const node of this.nodes) {
      if (nodeTimeout ? this.isUnreachable(next, node) : node === before) continue;
      this.learn(next, node, last);
      next[at.epoch(node)] = Math.max(next[at.epoch(node)]!, epoch);
    }
  }

  /** Without views of epochs, all of them stay at zero. */
  get countsEpochs(): boolean {
    return this.options.view !== 'claims' && this.options.view !== 'none';
  }

  /** The epoch under which a primary takes slots without votes. */
  bumped(state: Uint8Array, server: number): number {
    return Math.max(state[this.at.epoch(server)]!, state[this.at.claimEpoch(state[this.at.last]!)]!) + 1;
  }

  /** Counts an event. */
  happen(next: Uint8Array): void {
    next[this.at.events]! -= 1;
    next[this.at.since] = 0;
  }
}
