import { connectWith } from './ours.mjs';

/** As little as the peers do: no guard against masters that forgot. */
export const connect = (urls, { ttl } = {}) => connectWith(urls, { ttl, maxTtl: ttl, restartGuard: false });
