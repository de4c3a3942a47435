// Where the model of a cluster keeps what.

/** The two processes of the shard that has the partition at the start: a primary and its replica. */
export const A = 0;
export const B = 1;
/** Another primary, the target of moves. */
export const C = 2;
/** A primary that only votes. */
export const D = 3;

/** The processes that can have the partition. */
export const SERVERS = [A, B, C];

/** The name in a seal that is none of the processes that run. */
export const FOREIGN = 7;

/** The largest number of claims after the first one. */
export const MAX_CLAIMS = 3;

/** The newest claim of the partition that a node knows, the current epoch, and the newest claim of other slots. */
const CLAIM = 0;
const EPOCH = 1;
const OTHER = 2;
const NODE = 3;

const OWNER = 0;
const EXPIRY = 1;
/** The process that the seal names, plus one. */
const SEAL = 2;
const SEAL_CLAIM = 3;
const FROM = 4;
/** Whether keys have migrated away since the seal was written: the number of MIGRATE calls in it is an old one. */
const MIGRATED = 5;
const DATA = 6;

const MAP = 0;
const MAP_EPOCH = 1;
const BELIEF = 2;
const ROUND = 3;
/** Ticks since the view was sent, plus one; 0 if there is none. */
const VIEW = 4;
/** A seal that was read and is to be written: the process plus one, what was read, how long ago, and in which map. */
const PENDING = 5;
const PENDING_SEAL = 6;
const PENDING_AGE = 7;
const PENDING_CLAIM = 8;
/** The process that the round was sent to, plus one. */
const SENT = 9;
/** Whether the last view has shown that the partition was migrating. */
const MARKED = 10;
const CLIENT = 11;

const CLIENTS = 2;

/** Offsets of the fields of a state: nodes, data, clients, claims, and the rest. */
export class ClusterLayout {
  readonly width: number;
  /** The newest claim of all. */
  readonly last: number;
  readonly events: number;
  /** The process that migrates the partition, and the one that it migrates to, plus one. */
  readonly source: number;
  readonly target: number;
  /** The process that asks for votes, plus one; in which epoch; and the voters. */
  readonly candidate: number;
  readonly candidateEpoch: number;
  readonly voted: number;
  /** Ticks for which the voters have missed the primary, and for which it has missed them. */
  readonly missed: number;
  readonly isolated: number;
  readonly paused: number;
  readonly cut: number;
  readonly since: number;
  /** Ticks until the operator may give up the move. */
  readonly abortIn: number;
  private readonly data: number;
  private readonly clients: number;
  private readonly claims: number;

  constructor(readonly nodes: number) {
    this.data = nodes * NODE;
    this.clients = this.data + SERVERS.length * DATA;
    this.claims = this.clients + CLIENTS * CLIENT;
    this.last = this.claims + 2 * (MAX_CLAIMS + 1);
    this.events = this.last + 1;
    this.target = this.last + 2;
    this.candidate = this.last + 3;
    this.candidateEpoch = this.last + 4;
    this.voted = this.last + 5;
    this.missed = this.last + 6;
    this.isolated = this.last + 7;
    this.paused = this.last + 8;
    this.cut = this.last + 9;
    this.since = this.last + 10;
    this.source = this.last + 11;
    this.abortIn = this.last + 12;
    this.width = this.last + 13;
  }

  claim(node: number): number {
    return node * NODE + CLAIM;
  }

  epoch(node: number): number {
    return node * NODE + EPOCH;
  }

  other(node: number): number {
    return node * NODE + OTHER;
  }

  owner(server: number): number {
    return this.data + server * DATA + OWNER;
  }

  expiry(server: number): number {
    return this.data + server * DATA + EXPIRY;
  }

  seal(server: number): number {
    return this.data + server * DATA + SEAL;
  }

  sealClaim(server: number): number {
    return this.data + server * DATA + SEAL_CLAIM;
  }

  from(server: number): number {
    return this.data + server * DATA + FROM;
  }

  migrated(server: number): number {
    return this.data + server * DATA + MIGRATED;
  }

  map(c: number): number {
    return this.clients + c * CLIENT + MAP;
  }

  mapEpoch(c: number): number {
    return this.clients + c * CLIENT + MAP_EPOCH;
  }

  belief(c: number): number {
    return this.clients + c * CLIENT + BELIEF;
  }

  round(c: number): number {
    return this.clients + c * CLIENT + ROUND;
  }

  view(c: number): number {
    return this.clients + c * CLIENT + VIEW;
  }

  pending(c: number): number {
    return this.clients + c * CLIENT + PENDING;
  }

  pendingSeal(c: number): number {
    return this.clients + c * CLIENT + PENDING_SEAL;
  }

  pendingAge(c: number): number {
    return this.clients + c * CLIENT + PENDING_AGE;
  }

  pendingClaim(c: number): number {
    return this.clients + c * CLIENT + PENDING_CLAIM;
  }

  clearPending(next: Uint8Array, c: number): void {
    next[this.pending(c)] = 0;
    next[this.pendingSeal(c)] = 0;
    next[this.pendingAge(c)] = 0;
    next[this.pendingClaim(c)] = 0;
  }

  sent(c: number): number {
    return this.clients + c * CLIENT + SENT;
  }

  marked(c: number): number {
    return this.clients + c * CLIENT + MARKED;
  }

  /** The process that made a claim. */
  claimant(claim: number): number {
    return this.claims + 2 * claim;
  }

  claimEpoch(claim: number): number {
    return this.claims + 2 * claim + 1;
  }

  clearKey(next: Uint8Array, server: number): void {
    next[this.owner(server)] = 0;
    next[this.expiry(server)] = 0;
  }

  clearSeal(next: Uint8Array, server: number): void {
    next[this.seal(server)] = 0;
    next[this.sealClaim(server)] = 0;
    next[this.from(server)] = 0;
  }

  copyKey(next: Uint8Array, from: number, to: number): void {
    next[this.owner(to)] = next[this.owner(from)]!;
    next[this.expiry(to)] = next[this.expiry(from)]!;
  }

  copySeal(next: Uint8Array, from: number, to: number): void {
    next[this.seal(to)] = next[this.seal(from)]!;
    next[this.sealClaim(to)] = next[this.sealClaim(from)]!;
    next[this.from(to)] = next[this.from(from)]!;
  }

  endElection(next: Uint8Array): void {
    next[this.candidate] = 0;
    next[this.candidateEpoch] = 0;
    next[this.voted] = 0;
  }

  endMove(next: Uint8Array): void {
    next[this.source] = 0;
    next[this.target] = 0;
    next[this.abortIn] = 0;
  }

  /** A process has another run id or replid: no seal names it any more. */
  rename(next: Uint8Array, server: number): void {
    for (const holder of SERVERS) if (next[this.seal(holder)] === server + 1) next[this.seal(holder)] = FOREIGN;
  }
}
