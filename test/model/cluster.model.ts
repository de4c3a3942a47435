import { type Emit } from './checker.js';
import { ClusterBus } from './cluster.bus.js';
import { A, at, SERVERS, widthOf } from './cluster.layout.js';
import { type ClusterMap, Maps } from './cluster.maps.js';
import { type ClusterOptions } from './cluster.options.js';
import { type EmitStep, Ownership } from './cluster.ownership.js';
import { Seals } from './cluster.seals.js';
import { actionOf, CLIENT, ClusterWords, describe } from './cluster.words.js';
import { decrement, StateModel } from './states.js';

/** The client that also extends; the other one only acquires. */
const L = 0;
const CLIENTS = [0, 1];

/**
 * Section 12: one cluster that is one master, two clients, and one partition. Ticks are whole, and clocks agree. A vote
 * checks directly that the seal names the process that executes it, which the script does by run id, replid and nonce.
 *
 * A view counts from the instant at which it is sent. The claims and epochs that a node knows only grow, so what a node
 * may answer to a view is what it does not know to be outdated at that instant.
 */
export class ClusterModel extends StateModel<ClusterOptions> {
  private readonly ownership: Ownership;
  private readonly bus: ClusterBus;
  private readonly maps: Maps;
  private readonly seals: Seals;
  private readonly words: ClusterWords;

  constructor(options: ClusterOptions) {
    super(options, widthOf(options.primaries + 1));
    const { copy, weak } = this;
    const parts = { options, copy, weak };
    this.ownership = new Ownership(parts);
    this.bus = new ClusterBus(parts, this.ownership);
    this.maps = new Maps(parts, this.ownership);
    this.seals = new Seals(parts, this.ownership);
    this.words = new ClusterWords(options);
  }

  initial(): Uint8Array[] {
    const state = new Uint8Array(this.width);
    state[at.events] = this.options.maxEvents;
    state[at.seal(A)] = A + 1;
    if (!this.ownership.countsEpochs) return [state];
    for (const node of this.ownership.nodes) state[at.epoch(node)] = 1;
    state[at.claimEpoch(0)] = 1;
    for (const c of CLIENTS) state[at.mapEpoch(c)] = 1;
    return [state];
  }

  violation(state: Uint8Array): string | undefined {
    const { prompt } = this.options;
    if (prompt && state[at.since]! > prompt.within && !CLIENTS.some((c) => this.canVote(state, c))) {
      return `no vote counts after ${prompt.within} ticks`;
    }
    const both = CLIENTS.every((c) => state[at.belief(c)]! > 0);
    return both ? 'L and X both believe that they hold the lock' : undefined;
  }

  successors(state: Uint8Array, emit: Emit): void {
    const step: EmitStep = (next, kind, first, second) => emit(next, actionOf(kind, first, second));
    let isUrgent = false;
    for (const c of CLIENTS) {
      if (!this.options.prompt) this.request(state, c, step);
      const isBehind = this.readMap(state, c, step);
      const isUnsealed = this.seals.write(state, c, step);
      this.seals.writeLate(state, c, step);
      isUrgent ||= isBehind || isUnsealed;
    }
    this.bus.steps(state, step);
    if (!this.options.prompt || !(isUrgent || this.bus.hasNews(state))) this.tick(state, step);
  }

  private request(state: Uint8Array, c: number, emit: EmitStep): void {
    this.begin(state, c, emit);
    this.ask(state, c, emit);
    if (!this.needsView || !this.maps.canConfirm(state, this.map(state, c))) return;
    const server = this.mapped(state, c);
    if (this.seals.hasOldCalls(state, server)) return;
    const showsMark = this.options.abortRule === 'mark in views' && this.ownership.isMigratingFrom(state, server);
    const wasMarked = state[at.marked(c)] === 1;
    if (state[at.view(c)] === 1 && showsMark === wasMarked) return;
    const next = this.copy(state);
    next[at.view(c)] = 1;
    next[at.marked(c)] = showsMark ? 1 : 0;
    if (showsMark !== wasMarked) this.seals.renew(next, c, server);
    emit(next, 'view', CLIENT + c);
  }

  /** Sends an attempt or an extension. Its validity counts from here. */
  private begin(state: Uint8Array, c: number, emit: EmitStep): void {
    if (state[at.round(c)] === this.options.ttl) return;
    if (c !== L && (state[at.belief(c)]! > 0 || state[at.round(c)]! > 0)) return;
    const next = this.copy(state);
    next[at.round(c)] = this.options.ttl;
    next[at.sent(c)] = this.mapped(state, c) + 1;
    emit(next, state[at.belief(c)]! > 0 ? 'begin to extend' : 'begin', CLIENT + c);
  }

  /** The process executes the request and grants it, and the vote counts. */
  private ask(state: Uint8Array, c: number, emit: EmitStep): void {
    const round = state[at.round(c)]!;
    const server = state[at.sent(c)]! - 1;
    if (round === 0 || !this.ownership.serves(state, server) || !this.seals.isKnown(state, server, c)) return;
    if (this.needsView && !this.isConfirmed(state, c)) return;
    if (state[at.marked(c)] === 1) return;
    const owner = state[at.owner(server)]!;
    const isExtension = state[at.belief(c)]! > 0;
    if (owner !== 0 && (owner !== c + 1 || !isExtension)) return;
    const countsYoung = owner !== 0 && this.weak.has('extension of a present key counts in a quarantine');
    if (state[at.from(server)]! > 0 && !countsYoung) return;
    // A key that is absent while slots migrate may be at the target: TRYAGAIN.
    if (owner === 0 && this.ownership.isMigratingFrom(state, server)) return;
    const next = this.copy(state);
    next[at.owner(server)] = c + 1;
    next[at.expiry(server)] = this.options.ttl;
    next[at.belief(c)] = this.weak.has('validity counts from the answer') ? this.options.ttl : round;
    this.endRound(next, c);
    emit(next, isExtension ? 'extend' : 'grant', CLIENT + c, server);
  }

  /** Whether a view was sent at most H before the request, or later. Protocol 12.7. */
  private isConfirmed(state: Uint8Array, c: number): boolean {
    const view = state[at.view(c)]!;
    const age = this.options.ttl - state[at.round(c)]!;
    return view > 0 && view - 1 - age <= this.options.viewAge;
  }

  private endRound(next: Uint8Array, c: number): void {
    next[at.round(c)] = 0;
    next[at.sent(c)] = 0;
  }

  /** Takes a newer map. Returns whether there is one. */
  private readMap(state: Uint8Array, c: number, emit: EmitStep): boolean {
    const maps = this.maps.newer(state, this.map(state, c));
    for (const { claim, epoch } of maps) {
      const next = this.copy(state);
      next[at.map(c)] = claim;
      next[at.mapEpoch(c)] = epoch;
      next[at.view(c)] = 0;
      if (!this.weak.has('a vote counts although the map has changed since')) this.endRound(next, c);
      emit(next, 'map', CLIENT + c, claim);
    }
    return maps.length > 0;
  }

  private canVote(state: Uint8Array, c: number): boolean {
    const server = this.mapped(state, c);
    if (!this.ownership.serves(state, server) || !this.seals.isKnown(state, server, c)) return false;
    const isConfirmed = !this.needsView || this.maps.canConfirm(state, this.map(state, c));
    return isConfirmed && state[at.from(server)] === 0;
  }

  private tick(state: Uint8Array, emit: EmitStep): void {
    const { prompt } = this.options;
    const next = this.copy(state);
    for (const server of SERVERS) {
      if (decrement(next, at.expiry(server)) === 0) next[at.owner(server)] = 0;
      decrement(next, at.from(server));
    }
    decrement(next, at.abortIn);
    for (const c of CLIENTS) this.age(next, c);
    this.miss(next);
    const bound = prompt ? prompt.within + 1 : (this.options.staysAway ?? 0);
    if (next[at.since]! < bound) next[at.since]! += 1;
    emit(next, 'tick');
  }

  private age(next: Uint8Array, c: number): void {
    const { masterTimeout, ttl, viewAge } = this.options;
    const isHeld = next[at.belief(c)]! > 0;
    // An extension that is answered after the end of the old validity does not count.
    if (decrement(next, at.belief(c)) === 0 && isHeld) this.endRound(next, c);
    const round = decrement(next, at.round(c));
    if (round === 0 || ttl - round > masterTimeout) this.endRound(next, c);
    if (next[at.view(c)]! > 0) next[at.view(c)]! += 1;
    if (next[at.view(c)]! - 1 > viewAge + masterTimeout) next[at.view(c)] = 0;
    this.seals.age(next, c);
  }

  private miss(next: Uint8Array): void {
    const { nodeTimeout } = this.options;
    if (!nodeTimeout || !this.ownership.isUnreachable(next, A)) return;
    if (next[at.missed]! < nodeTimeout.ticks) next[at.missed]! += 1;
    if (next[at.paused] === 0 && next[at.isolated]! < nodeTimeout.ticks * 2) next[at.isolated]! += 1;
  }

  private map(state: Uint8Array, c: number): ClusterMap {
    return { claim: state[at.map(c)]!, epoch: state[at.mapEpoch(c)]! };
  }

  /** The process that has the partition in the map of a client. */
  private mapped(state: Uint8Array, c: number): number {
    return this.ownership.claimant(state, state[at.map(c)]!);
  }

  private get needsView(): boolean {
    return this.options.view !== 'none' && !this.weak.has('no view');
  }

  describe(code: number): string {
    return describe(code);
  }

  show(state: Uint8Array): string {
    return this.words.show(state);
  }
}
