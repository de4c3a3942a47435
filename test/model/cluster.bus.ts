import { Failover } from './cluster.failover.js';
import { A, at, clearKey, clearPending, clearSeal, D, rename, SERVERS } from './cluster.layout.js';
import { Moves } from './cluster.moves.js';
import { ClusterPart, type ClusterParts, type EmitStep, type Ownership } from './cluster.ownership.js';

/**
 * The processes of a cluster, and the bus between them. News arrives at any time or never, which covers delays, pauses
 * and partitions. A heartbeat carries the current epoch of its sender, and what the sender claims itself.
 */
export class ClusterBus extends ClusterPart {
  private readonly failover: Failover;
  private readonly moves: Moves;

  constructor(parts: ClusterParts, ownership: Ownership) {
    super(parts, ownership);
    this.failover = new Failover(parts, ownership);
    this.moves = new Moves(parts, ownership);
  }

  steps(state: Uint8Array, emit: EmitStep): void {
    const { nodes } = this.ownership;
    for (const node of nodes) for (const from of nodes) this.hear(state, node, from, emit);
    this.failover.steps(state, emit);
    this.moves.steps(state, emit);
    if (this.options.nodeTimeout) this.connection(state, emit);
    if (state[at.events] === 0) return;
    for (const server of SERVERS) if (server < nodes.length) this.restart(state, server, emit);
  }

  /** Whether news is under way. */
  hasNews(state: Uint8Array): boolean {
    const { nodes } = this.ownership;
    const epoch = Math.max(...nodes.map((node) => state[at.epoch(node)]!));
    const isBehind = (node: number): boolean =>
      this.ownership.claim(state, node) < state[at.last]! || state[at.epoch(node)]! < epoch;
    return state[at.candidate] !== 0 || state[at.target] !== 0 || nodes.some(isBehind);
  }

  private hear(state: Uint8Array, node: number, from: number, emit: EmitStep): void {
    if (node === from || this.ownership.isUnreachable(state, node) || this.ownership.isUnreachable(state, from)) return;
    const claim = this.ownership.owns(state, from) ? this.ownership.claim(state, from) : 0;
    const epoch = state[at.epoch(from)]!;
    const other = from === D ? state[at.other(from)]! : 0;
    const isNews = claim > this.ownership.claim(state, node) || other > state[at.other(node)]!;
    if (!isNews && epoch <= state[at.epoch(node)]!) return;
    const next = this.copy(state);
    next[at.epoch(node)] = Math.max(next[at.epoch(node)]!, epoch);
    next[at.other(node)] = Math.max(next[at.other(node)]!, other);
    this.ownership.learn(next, node, claim);
    if (this.options.staysAway) next[at.since] = 0;
    emit(next, 'hear', node, from);
  }

  private restart(state: Uint8Array, server: number, emit: EmitStep): void {
    const { options } = this;
    if (!this.ownership.serves(state, server)) return;
    const hasCopy = state[at.owner(server)] !== 0;
    for (const event of ['empty restart', 'stale restart', 'flush'] as const) {
      if (!options.events.includes(event)) continue;
      for (const withKey of event === 'stale restart' && hasCopy ? [false, true] : [false]) {
        const next = this.copy(state);
        this.ownership.happen(next);
        if (withKey) next[at.expiry(server)] = options.ttl;
        else clearKey(next, server);
        if (event !== 'stale restart') clearSeal(next, server);
        if (event !== 'flush') this.newRun(next, server);
        emit(next, withKey ? 'stale key' : event, server);
      }
    }
  }

  private newRun(next: Uint8Array, server: number): void {
    if (!this.weak.has('no run id, and a replid that was compared before')) rename(next, server);
    // A write that is bound to the run of before is refused.
    for (const c of [0, 1]) if (next[at.pending(c)] === server + 1) clearPending(next, c);
  }

  /** The voters and the primary A lose sight of each other, or A stands still. */
  private connection(state: Uint8Array, emit: EmitStep): void {
    const { options } = this;
    const next = this.copy(state);
    if (this.ownership.isUnreachable(state, A)) {
      for (const field of [at.paused, at.cut, at.missed, at.isolated]) next[field] = 0;
      // A process that stood still executes what is queued before it hears anything.
      if (state[at.paused] === 0) this.ownership.learn(next, A, next[at.last]!);
      emit(next, 'connect', A);
      return;
    }
    next[at.cut] = 1;
    emit(next, 'cut', A);
    if (!options.nodeTimeout?.pause) return;
    next[at.cut] = 0;
    next[at.paused] = 1;
    emit(next, 'pause', A);
  }
}
