import { PERMITS } from '../sharing/limit.mjs';
import * as ours from './ours.mjs';

/** Permits of the name that is the key. */
export async function connect(urls, settings) {
  const contender = await ours.connect(urls, settings);
  return { ...contender, acquire: (key, ttl) => contender.acquire(key, { ttl, permits: PERMITS }) };
}
