import { at, C, clearPending } from './cluster.layout.js';
import { ClusterPart, type EmitStep } from './cluster.ownership.js';
import { CLIENT } from './cluster.words.js';

/** Protocol 12.5 and 12.6: which data is known, and how unknown data is sealed. */
export class Seals extends ClusterPart {
  /** Whether the data is that which was acknowledged: run, replid and nonce of the seal. Protocol 12.5. */
  isKnown(state: Uint8Array, server: number, c: number): boolean {
    if (this.hasOldCalls(state, server) && this.options.abortRule === 'calls in scripts') return false;
    const named = state[at.seal(server)]!;
    if (this.weak.has('no guard')) return true;
    if (named === 0 || this.weak.has('identity is the nonce only')) return named !== 0;
    const claim = state[this.options.claimInViews ? at.map(c) : at.claim(server)];
    if (this.options.sealHasClaim && state[at.sealClaim(server)] !== claim) return false;
    if (named === server + 1) return true;
    // A seal that names a running process of another shard came with a migration.
    const isMigrated = named <= this.ownership.nodes.length && (named - 1 === C) !== (server === C);
    return isMigrated && this.weak.has('a migration needs no wait');
  }

  /** Whether the seal has another number of MIGRATE calls than its process. Only rules that count them notice that. */
  hasOldCalls(state: Uint8Array, server: number): boolean {
    return state[at.migrated(server)] === 1;
  }

  /** Seals unknown data of the owner in the map of a client. Returns whether there is some. */
  write(state: Uint8Array, c: number, emit: EmitStep): boolean {
    const server = this.ownership.claimant(state, state[at.map(c)]!);
    if (!this.ownership.serves(state, server) || !this.isAllowed(state, server, state[at.map(c)]!)) return false;
    // Neither key is present: ASK.
    if (state[at.seal(server)] === 0 && this.ownership.isMigratingFrom(state, server)) return false;
    const isUnknown = !this.isKnown(state, server, c) || this.hasOldCalls(state, server);
    if (this.options.lateSeals) {
      if (isUnknown && state[at.pending(c)] === 0) this.read(state, c, server, emit);
      return isUnknown;
    }
    const isYoung = state[at.from(server)]! > 0;
    if (!isUnknown && !(isYoung && this.isUncompared)) return false;
    const next = this.copy(state);
    this.seal(next, server, this.options.wait);
    emit(next, 'seal', CLIENT + c, server);
    return isUnknown;
  }

  /** Seals known data anew. */
  renew(next: Uint8Array, c: number, server: number): void {
    const mayWrite = this.ownership.serves(next, server) && this.isAllowed(next, server, next[at.map(c)]!);
    if (mayWrite && next[at.seal(server)] !== 0) this.seal(next, server, this.options.wait);
  }

  private read(state: Uint8Array, c: number, server: number, emit: EmitStep): void {
    const next = this.copy(state);
    next[at.pending(c)] = server + 1;
    next[at.pendingSeal(c)] = state[at.seal(server)]!;
    next[at.pendingClaim(c)] = state[at.map(c)]!;
    emit(next, 'read', CLIENT + c, server);
  }

  /** A seal that was sent some time ago arrives. It is bound to the run, to what was read, and to the claim. */
  writeLate(state: Uint8Array, c: number, emit: EmitStep): void {
    const server = state[at.pending(c)]! - 1;
    if (server < 0 || !this.ownership.serves(state, server)) return;
    const next = this.copy(state);
    const isSame = state[at.seal(server)] === state[at.pendingSeal(c)];
    if (this.isAllowed(state, server, state[at.pendingClaim(c)]!) && (isSame || this.isUncompared)) {
      this.seal(next, server, this.options.wait - state[at.pendingAge(c)]!);
    }
    clearPending(next, c);
    emit(next, 'write', CLIENT + c, server);
  }

  age(next: Uint8Array, c: number): void {
    if (!this.weak.has('`from` is computed when the data is read') || next[at.pending(c)] === 0) return;
    if (next[at.pendingAge(c)]! < this.options.wait) next[at.pendingAge(c)]! += 1;
  }

  private get isUncompared(): boolean {
    return this.weak.has('a seal is written without compare-and-set');
  }

  /**
   * The script that writes a seal compares the claim of its process with that in the map of the client.
   * Protocol 12.6 and 12.7.
   */
  private isAllowed(state: Uint8Array, server: number, claim: number): boolean {
    if (this.options.view !== 'claims' || this.weak.has('a seal is written whatever its process claims')) return true;
    return state[at.claim(server)] === claim;
  }

  private seal(next: Uint8Array, server: number, wait: number): void {
    next[at.seal(server)] = server + 1;
    // Protocol 12.6
    next[at.from(server)] = wait;
    next[at.migrated(server)] = 0;
    if (this.options.sealHasClaim) next[at.sealClaim(server)] = next[at.claim(server)]!;
  }
}
