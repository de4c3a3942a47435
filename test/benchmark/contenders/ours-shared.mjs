import * as ours from './ours.mjs';

/** Shared locks. */
export async function connect(urls, settings) {
  const contender = await ours.connect(urls, settings);
  return { ...contender, acquire: (key, ttl) => contender.acquire(key, { ttl, mode: 'shared' }) };
}
