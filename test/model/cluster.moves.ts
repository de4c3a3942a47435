import { at, C, clearKey, clearSeal, copyKey, copySeal, D, endMove, MAX_CLAIMS, SERVERS } from './cluster.layout.js';
import { ClusterPart, type EmitStep } from './cluster.ownership.js';

const MOVES = ['move', 'forced move', 'aborted move'] as const;

/** The partition moves between the shard of A and B and the primary C: epochs change without votes. */
export class Moves extends ClusterPart {
  steps(state: Uint8Array, emit: EmitStep): void {
    this.migrate(state, emit);
    if (this.options.namesOwnersFirst) this.assign(state, emit);
    if (state[at.events] === 0) return;
    this.moveOthers(state, emit);
    if (state[at.last] === MAX_CLAIMS) return;
    this.reclaim(state, emit);
    this.begin(state, emit);
  }

  private begin(state: Uint8Array, emit: EmitStep): void {
    const last = state[at.last]!;
    const owner = this.ownership.owner(state);
    const target = owner === C ? this.ownership.electorate(state, last)[0]! : C;
    if (state[at.target] !== 0 || target >= this.ownership.nodes.length) return;
    if (last > 0 && state[at.since]! < (this.options.staysAway ?? 0)) return;
    // A process that still believes that the partition is its own refuses to import it.
    if (this.ownership.claim(state, target) !== last) return;
    for (const event of MOVES) {
      if (!this.options.events.includes(event)) continue;
      const next = this.copy(state);
      this.ownership.happen(next);
      next[at.source] = owner + 1;
      next[at.target] = target + 1;
      emit(next, 'move', owner, target);
    }
    if (!this.options.events.includes('atomic move')) return;
    const next = this.copy(state);
    this.ownership.happen(next);
    copyKey(next, owner, target);
    copySeal(next, owner, target);
    this.ownership.addClaim(next, target, this.ownership.bumped(state, target));
    emit(next, 'atomic move', owner, target);
  }

  /** Keys migrate also after the target has claimed the slots, until the source hears of that. */
  private migrate(state: Uint8Array, emit: EmitStep): void {
    const source = state[at.source]! - 1;
    const target = state[at.target]! - 1;
    if (target < 0) return;
    const hasKey = state[at.owner(source)] !== 0;
    const hasSeal = state[at.seal(source)] !== 0;
    const isOneKey = this.options.abortRule === 'one key';
    if (hasKey && !isOneKey && state[at.owner(target)] === 0) {
      const next = this.copy(state);
      copyKey(next, source, target);
      clearKey(next, source);
      this.noteMigrate(next, source);
      emit(next, 'migrate key', source, target);
    }
    if (hasSeal && state[at.seal(target)] === 0) {
      const next = this.copy(state);
      copySeal(next, source, target);
      clearSeal(next, source);
      if (isOneKey) copyKey(next, source, target);
      if (isOneKey) clearKey(next, source);
      this.noteMigrate(next, source);
      emit(next, 'migrate seal', source, target);
    }
    if (this.ownership.owner(state) !== source) return;
    const isEmpty = !hasKey && !hasSeal;
    if (state[at.last] !== MAX_CLAIMS && (isEmpty || this.options.events.includes('forced move'))) {
      const next = this.copy(state);
      this.ownership.addClaim(next, target, this.ownership.bumped(state, target));
      emit(next, 'claim', target);
    }
    if (!this.options.events.includes('aborted move') || state[at.abortIn]! > 0) return;
    const next = this.copy(state);
    endMove(next);
    emit(next, 'abort', source);
  }

  /** The operator names the owner at a node that has not heard of its new claim, and takes it for an earlier one. */
  private assign(state: Uint8Array, emit: EmitStep): void {
    const owner = this.ownership.owner(state);
    let claim = state[at.last]! - 1;
    while (claim >= 0 && this.ownership.claimant(state, claim) !== owner) claim -= 1;
    if (claim < 0) return;
    for (const node of this.ownership.nodes) {
      const known = this.ownership.claim(state, node);
      if (node === owner || known <= claim || known === state[at.last]) continue;
      const next = this.copy(state);
      this.ownership.learn(next, node, state[at.last]!);
      next[at.claim(node)] = claim;
      emit(next, 'assign', node, owner);
    }
  }

  private noteMigrate(next: Uint8Array, source: number): void {
    const { abortAfter = 0, abortRule } = this.options;
    next[at.abortIn] = abortAfter;
    if (abortRule === 'calls in views' || abortRule === 'calls in scripts') next[at.migrated(source)] = 1;
  }

  private reclaim(state: Uint8Array, emit: EmitStep): void {
    if (!this.options.events.includes('reclaim')) return;
    for (const server of SERVERS) {
      if (!this.ownership.owns(state, server) || this.ownership.owner(state) === server) continue;
      const next = this.copy(state);
      this.ownership.happen(next);
      this.ownership.addClaim(next, server, this.ownership.bumped(state, server));
      if (this.ownership.isMigratingFrom(state, server)) endMove(next);
      emit(next, 'reclaim', server);
    }
  }

  private moveOthers(state: Uint8Array, emit: EmitStep): void {
    if (!this.options.events.includes('move of other slots')) return;
    const next = this.copy(state);
    this.ownership.happen(next);
    next[at.epoch(D)]! += 1;
    next[at.other(D)] = next[at.epoch(D)]!;
    emit(next, 'move of other slots', D);
  }
}
