import { Redis } from 'ioredis';
import type { Clock } from '../../core/clock.js';
import type { NodeAddress } from '../endpoint.js';
import { translationBy } from '../nat-map.js';
import { OWN_SETTINGS } from '../own-settings.js';
import type { RedisClient, RedisClientOptions } from '../redis-client.interface.js';
import { Sentinel } from './sentinel.js';
import { PrimaryConnections } from './sentinel-connector.js';
import { SentinelViews } from './sentinel-views.js';

export const SENTINEL_PORT = 26_379;

/** The sentinels of a group, and the connections to the primaries that they name. */
export interface SentinelGroup {
  readonly views: SentinelViews;
  readonly connections: PrimaryConnections;
}

interface GroupContext {
  readonly clock: Clock;
  /** Whether a majority of all sentinels must name the primary. */
  readonly isStrict: boolean;
}

/**
 * The sentinels in the settings of a client.
 *
 * @throws {RedlockConfigError} if `natMap` is invalid
 */
export function sentinelGroup(option: string, settings: RedisClientOptions, context: GroupContext): SentinelGroup {
  const { sentinels, natMap, updateSentinels, enableTLSForSentinelMode, tls, disconnectTimeout, ...login } = settings;
  const name = settings.name ?? '';
  const translate = translationBy(`${option}.natMap`, natMap);
  const secrets = [settings.password, settings.sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
  const families = new Map((sentinels ?? []).map(({ host, family }) => [host, family]));
  const open = (address: NodeAddress): RedisClient =>
    new Redis({
      ...address,
      ...{ username: login.sentinelUsername ?? undefined, password: login.sentinelPassword ?? undefined },
      ...{ family: families.get(address.host) ?? login.family, tls: login.sentinelTLS },
      ...{
        lazyConnect: true,
        retryStrategy: null,
        enableReadyCheck: false,
        replyMapping: 'legacy',
        maxRetriesPerRequest: 0,
      },
      connectionName: settings.connectionName ?? undefined,
      disconnectTimeout: OWN_SETTINGS.disconnectTimeout,
    });
  const views = new SentinelViews({
    ...context,
    name,
    listed: (sentinels ?? []).map(({ host = 'localhost', port = SENTINEL_PORT }) => ({ host, port })),
    asksPeers: updateSentinels !== false,
    open: (address) => new Sentinel({ name, translate, secrets, open: () => open(address) }),
  });
  const usedTls = enableTLSForSentinelMode && tls ? tls : undefined;
  const connections = new PrimaryConnections(views, {
    tls: usedTls,
    disconnectTimeout: disconnectTimeout ?? OWN_SETTINGS.disconnectTimeout,
  });
  return { views, connections };
}
