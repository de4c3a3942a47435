/** What happens to the processes of a cluster, and to the partition that both clients lock. */
export type ClusterEvent =
  /** The process that serves the partition comes back without data, within the node timeout. */
  | 'empty restart'
  /** The same with a copy of the data in which the lock may be missing. At C it is also a failover to a stale replica. */
  | 'stale restart'
  /** The same process drops all keys. */
  | 'flush'
  /** A replica asks the primaries for votes. The old primary may have crashed, be paused or partitioned, or be alive. */
  | 'election'
  /** A replica claims the slots, with votes or without: `CLUSTER FAILOVER TAKEOVER`. */
  | 'takeover'
  /** Lock and seal migrate one by one, in any order, and the target claims the slots when the source has neither. */
  | 'move'
  /** The same, and the target may claim the slots before. */
  | 'forced move'
  /** The same, and the move may be given up half-way: `CLUSTER SETSLOT STABLE`. */
  | 'aborted move'
  /** The target claims the slots with a copy of everything, and the source serves until it hears of that. */
  | 'atomic move'
  /**
   * A primary that has not heard that it lost the slots claims them again, with the data of before: by hand, or because
   * its config epoch collides with that of another one, and is raised.
   */
  | 'reclaim'
  /** Another primary takes slots that neither client uses: an epoch without votes. */
  | 'move of other slots';

/**
 * A rule that would make it safe to give up a move at any time. Question v; section 12 has none of them.
 *
 * - `mark in views`: a client that sees in a view that the partition is migrating seals it at once, lets no vote count
 *   while it sees that, and seals it again afterwards.
 * - `calls in views`: the seal has the number of MIGRATE calls of its process, and views compare it.
 * - `calls in scripts`: the scripts that grant compare it.
 * - `one key`: the lock is stored in the seal, so that both migrate in one step.
 */
export type AbortRule = 'mark in views' | 'calls in views' | 'calls in scripts' | 'one key';

/** A rule of section 12 that is left out. */
export type ClusterWeakening =
  | 'no guard'
  | 'no view'
  | 'a seal is written on the word of one node (the map in place of the epoch)'
  | 'a seal is written on the word of a majority with the owner in it'
  | 'a seal is written whatever its process claims'
  | 'a seal is written when the others name the owner, under any config epoch'
  /** Not a weakening but a question: a view compares the owner, and not its config epoch. */
  | 'a view compares the owner only'
  | 'views compare the claim, but not that of the owner'
  | 'a vote counts although the map has changed since'
  | 'a migration needs no wait'
  | 'identity is the nonce only'
  | 'no run id, and a replid that was compared before'
  | 'no replid'
  | 'validity counts from the answer'
  | 'extension of a present key counts in a quarantine'
  | 'a seal is written without compare-and-set'
  | '`from` is computed when the data is read';

/**
 * What a view compares (Protocol 12.7).
 *
 * - `claims`: the owner of the partition and its config epoch, and clients write seals only for a claim that enough of
 *   the other primaries know.
 * - `epoch`: the current epoch, with a map that a majority gave in that epoch.
 * - `epoch and claims`: both, with such a map.
 * - `newest config epoch`: the current epoch, which must be the largest config epoch in the map.
 * - `none`: nothing. Maps come from one node.
 */
export type View = 'claims' | 'epoch' | 'epoch and claims' | 'newest config epoch' | 'none';

export interface ClusterOptions {
  /** Primaries with slots. */
  readonly primaries: 1 | 3 | 5;
  /** Ticks for which a key lives, and for which a client believes in a lock from the start of its round. */
  readonly ttl: number;
  /** H: the largest age of a view when a vote is sent, in ticks. */
  readonly viewAge: number;
  /** Ticks within which a vote must be answered. */
  readonly masterTimeout: number;
  /** W_c, in ticks. */
  readonly wait: number;
  readonly view: View;
  readonly events: readonly ClusterEvent[];
  readonly maxEvents: number;
  readonly without?: readonly ClusterWeakening[];
  readonly abortRule?: AbortRule;
  /** The operator gives up a move only so many ticks after the last MIGRATE. */
  readonly abortAfter?: number;
  /** A seal counts only for the claim under which it was written. */
  readonly sealHasClaim?: boolean;
  /** Clients compare the claim in the seal with their map, and that of the process with a view of its own. Scripts do not. */
  readonly claimInViews?: boolean;
  /** `CLUSTER SETSLOT NODE`: a node names the owner before it has heard of the config epoch, and so under an old one. */
  readonly namesOwnersFirst?: boolean;
  /** The slots of a move come back so many ticks after the last event and the last news of it at the earliest. */
  readonly staysAway?: number;
  /** Voters hear of a promotion at once. The process that it replaces does not. */
  readonly voterMapsAreNew?: boolean;
  /** Seals are read and written in two steps, and the second one may come at any time. */
  readonly lateSeals?: boolean;
  /**
   * The node timeout, in ticks. Voters elect only when they have missed the primary for that long; it refuses when it
   * has missed them for one and a half node timeouts. With `pause` the primary may stand still instead.
   */
  readonly nodeTimeout?: { readonly ticks: number; readonly pause: boolean };
  /** All news arrives and all unknown data is sealed before the next tick, and votes must count within `within` ticks. */
  readonly prompt?: { readonly within: number };
}
