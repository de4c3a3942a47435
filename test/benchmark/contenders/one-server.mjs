import { connectWith } from './ours.mjs';

/** @param urls the first one is that of a server, the second one that of a cluster */
export const connect = ([url], { ttl, restartGuard = true } = {}) =>
  connectWith([url], { ttl, maxTtl: ttl, restartGuard });
