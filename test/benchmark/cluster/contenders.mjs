/** Locks of one server: what the others are compared with. */
export const ONE = 'one-server';
export const ONE_PLAIN = 'one-server-plain';
export const CLUSTER = 'cluster';
export const CLUSTER_PLAIN = 'cluster-plain';
/** With `batchPartitions`. */
export const BATCHED = 'cluster-batched';
/** Locks on resources with one hash tag, which are all in one partition of the cluster. */
export const TAGGED = 'cluster-one-tag';
export const TAGGED_PLAIN = 'cluster-one-tag-plain';

/** Each with what it is compared with: the same settings on one server. */
export const RIVALS = {
  [ONE]: ONE,
  [CLUSTER]: ONE,
  [BATCHED]: ONE,
  [TAGGED]: ONE,
  [ONE_PLAIN]: ONE_PLAIN,
  [CLUSTER_PLAIN]: ONE_PLAIN,
  [TAGGED_PLAIN]: ONE_PLAIN,
};
