import * as cluster from './cluster.mjs';

/** All resources have one hash tag, and so are in one partition. */
export async function connect(urls, settings) {
  const { acquire, close } = await cluster.connect(urls, settings);
  return { acquire: (key, ttl) => acquire(`{bench}${key}`, ttl), close };
}
