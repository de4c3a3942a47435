import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { Crew } from '../worker/crew.mjs';

/** Runs `work` with new servers, and with a process per contender (see `Crew`) that is connected to all of them. */
export async function onField({ masters, contenders, ttl }, work) {
  const servers = await Promise.all(Array.from({ length: masters }, () => RedisServer.start()));
  const urls = servers.map(({ url }) => url);
  let crew;
  try {
    crew = await Crew.connect(contenders, urls, { ttl });
    return await work({ crew, urls, servers, ttl });
  } finally {
    await crew?.end();
    await Promise.all(servers.map((server) => server.stop()));
  }
}
