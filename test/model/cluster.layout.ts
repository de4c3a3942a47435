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

const DATA = 6;
const CLIENTS = SERVERS.length * DATA;
const CLIENT = 11;
const CLAIMS = CLIENTS + 2 * CLIENT;
const SINGLE = CLAIMS + 2 * (MAX_CLAIMS + 1);
const NODES = SINGLE + 13;
const NODE = 3;

/** Offsets of the fields of a state: data, clients, claims, what is there once, and nodes. */
export const at = {
  owner: (server: number): number => server * DATA,
  expiry: (server: number): number => server * DATA + 1,
  /** The process that the seal names, plus one. */
  seal: (server: number): number => server * DATA + 2,
  sealClaim: (server: number): number => server * DATA + 3,
  from: (server: number): number => server * DATA + 4,
  /** Whether keys have migrated away since the seal was written: the number of MIGRATE calls in it is an old one. */
  migrated: (server: number): number => server * DATA + 5,

  map: (c: number): number => CLIENTS + c * CLIENT,
  mapEpoch: (c: number): number => CLIENTS + c * CLIENT + 1,
  belief: (c: number): number => CLIENTS + c * CLIENT + 2,
  round: (c: number): number => CLIENTS + c * CLIENT + 3,
  /** Ticks since the view was sent, plus one; 0 if there is none. */
  view: (c: number): number => CLIENTS + c * CLIENT + 4,
  /** A seal that was read and is to be written: the process plus one, what was read, how long ago, and in which map. */
  pending: (c: number): number => CLIENTS + c * CLIENT + 5,
  pendingSeal: (c: number): number => CLIENTS + c * CLIENT + 6,
  pendingAge: (c: number): number => CLIENTS + c * CLIENT + 7,
  pendingClaim: (c: number): number => CLIENTS + c * CLIENT + 8,
  /** The process that the round was sent to, plus one. */
  sent: (c: number): number => CLIENTS + c * CLIENT + 9,
  /** Whether the last view has shown that the partition was migrating. */
  marked: (c: number): number => CLIENTS + c * CLIENT + 10,

  /** The process that made a claim. */
  claimant: (claim: number): number => CLAIMS + 2 * claim,
  claimEpoch: (claim: number): number => CLAIMS + 2 * claim + 1,

  /** The newest claim of all. */
  last: SINGLE,
  events: SINGLE + 1,
  /** The process that migrates the partition, and the one that it migrates to, plus one. */
  source: SINGLE + 2,
  target: SINGLE + 3,
  /** Ticks until the operator may give up the move. */
  abortIn: SINGLE + 4,
  /** The process that asks for votes, plus one; in which epoch; and the voters. */
  candidate: SINGLE + 5,
  candidateEpoch: SINGLE + 6,
  voted: SINGLE + 7,
  /** Ticks for which the voters have missed the primary, and for which it has missed them. */
  missed: SINGLE + 8,
  isolated: SINGLE + 9,
  paused: SINGLE + 10,
  cut: SINGLE + 11,
  since: SINGLE + 12,

  /** The newest claim of the partition that a node knows, the current epoch, and the newest claim of other slots. */
  claim: (node: number): number => NODES + node * NODE,
  epoch: (node: number): number => NODES + node * NODE + 1,
  other: (node: number): number => NODES + node * NODE + 2,
};

export const widthOf = (nodes: number): number => NODES + nodes * NODE;

export function clearPending(next: Uint8Array, c: number): void {
  next.fill(0, at.pending(c), at.pendingClaim(c) + 1);
}

export function clearKey(next: Uint8Array, server: number): void {
  next.fill(0, at.owner(server), at.expiry(server) + 1);
}

export function clearSeal(next: Uint8Array, server: number): void {
  next.fill(0, at.seal(server), at.from(server) + 1);
}

export function copyKey(next: Uint8Array, from: number, to: number): void {
  next.copyWithin(at.owner(to), at.owner(from), at.expiry(from) + 1);
}

export function copySeal(next: Uint8Array, from: number, to: number): void {
  next.copyWithin(at.seal(to), at.seal(from), at.from(from) + 1);
}

export function endElection(next: Uint8Array): void {
  next.fill(0, at.candidate, at.voted + 1);
}

export function endMove(next: Uint8Array): void {
  next.fill(0, at.source, at.abortIn + 1);
}

/** A process has another run id or replid: no seal names it any more. */
export function rename(next: Uint8Array, server: number): void {
  for (const holder of SERVERS) if (next[at.seal(holder)] === server + 1) next[at.seal(holder)] = FOREIGN;
}
