import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { DelayingProxy } from '../proxy/delaying-proxy.mjs';
import { Crew } from '../worker/processes.mjs';

/**
 * Runs `work` with new servers, and with a process per contender (see `Crew`) that is connected to all of them.
 *
 * @param share the masters of a member, of all
 * @param proxied how many of the masters, the last ones, the contenders reach through a proxy, which adds no delay yet.
 *   The `urls` for `work` do not lead through it.
 */
export async function onField({ masters, contenders, ttl, share = (urls) => urls, proxied = 0 }, work) {
  const servers = await Promise.all(Array.from({ length: masters }, () => RedisServer.start()));
  const urls = servers.map(({ url }) => url);
  const direct = urls.slice(0, masters - proxied);
  let proxy;
  let crew;
  try {
    if (proxied > 0) proxy = await DelayingProxy.start(urls.slice(direct.length));
    const reached = [...direct, ...(proxy?.urls ?? [])];
    crew = await Crew.connect(contenders, (member) => share(reached, member), { ttl });
    return await work({ crew, urls, servers, ttl, proxy });
  } finally {
    await crew?.end();
    await proxy?.end();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** So many at a time that a delayed network does not make it last. */
const CALLERS = 256;
/** Locks of each contender after which its code is compiled, and the cost of a lock hardly falls any further. */
const LOCKS = { usual: 30_000, quick: 5_000 };

/** Lets all contenders run until they are in a steady state. Rounds that count begin after it. */
export async function warmUp({ crew, ttl }, { quick }) {
  const task = { callers: CALLERS, count: quick ? LOCKS.quick : LOCKS.usual, ttl };
  for (const member of crew.members) await crew.run(member, 'warmUp', task);
}
