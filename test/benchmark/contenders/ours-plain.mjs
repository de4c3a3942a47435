import { connectWith } from './ours.mjs';

/** Does as little as the peers: no guard against masters that lost their data. */
export const connect = (urls, { ttl } = {}) => connectWith(urls, { ttl, maxTtl: ttl, restartGuard: false });
