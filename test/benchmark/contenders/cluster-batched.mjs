import { connectWith } from './ours.mjs';

/** With one command for all partitions of a primary. */
export const connect = ([, url], { ttl } = {}) => {
  const nodes = url.replace('redis+cluster://', '').split(',');
  return connectWith([{ cluster: nodes, batchPartitions: true }], { ttl, maxTtl: ttl, restartGuard: true });
};
