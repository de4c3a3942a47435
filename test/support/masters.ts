import { RedisServer, type RedisServerOptions } from '../../scripts/redis-servers.mjs';

export interface Masters extends AsyncDisposable {
  readonly servers: readonly RedisServer[];
  readonly urls: readonly string[];
  /** Stops every server, including paused ones. */
  stop(): Promise<void>;
}

/** Starts `count` independent masters. All of them are up when it resolves, and none is left when it rejects. */
export async function startMasters(count: number, options?: Omit<RedisServerOptions, 'port'>): Promise<Masters> {
  const starts = await Promise.allSettled(Array.from({ length: count }, () => RedisServer.start(options)));
  const servers = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };

  const failed = starts.find((start) => start.status === 'rejected');
  if (failed) {
    await stop();
    throw failed.reason;
  }
  return { servers, urls: servers.map((server) => server.url), stop, [Symbol.asyncDispose]: stop };
}
