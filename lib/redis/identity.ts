import { type Marker, markerFrom } from './guard/marker.js';

/** The identity of a server and the state of its data, read atomically with its marker. */
export interface ServerIdentity {
  /** Identifies one run of a server process; empty if the user lacks the permission for INFO. */
  readonly run: string;
  /** Identifies one history of the data; empty if the user lacks the permission for INFO. */
  readonly replid: string;
  /** Whether the server was a replica before it had this history. */
  readonly wasPromoted: boolean;
  /** Number of replicas. */
  readonly replicas: number;
  readonly version: string | undefined;
  readonly role: string | undefined;
  readonly mode: string | undefined;
  /** Whether it writes an append-only file. */
  readonly hasAppendOnlyFile: boolean;
  /** The policy by which it drops keys when its memory is full; `undefined` if it drops none. */
  readonly eviction: string | undefined;
  /** Milliseconds since it started, by its wall clock. For display only. */
  readonly uptime: number;
  /** Its wall clock, in milliseconds. */
  readonly time: number;
  readonly marker: Marker | undefined;
}

const OLDEST = 7;
const NEVER_PROMOTED = /^(?:0+|)$/;

/** The fields of each section of INFO that a report contains. */
export const SECTIONS = {
  server: ['run_id', 'redis_version', 'valkey_version', 'redis_mode', 'server_mode', 'uptime_in_seconds'],
  replication: ['role', 'connected_slaves', 'master_replid', 'master_replid2'],
  memory: ['maxmemory', 'maxmemory_policy'],
  persistence: ['aof_enabled'],
} as const;

export type InfoField = (typeof SECTIONS)[keyof typeof SECTIONS][number];

/** The fields of INFO in the order in which a report has them. */
export const INFO_FIELDS: readonly InfoField[] = Object.values(SECTIONS).flat();

/** Reads the server's answer to the script in `scripts/report.lua.ts`: its time, {@link INFO_FIELDS} and the marker. */
export function parseServerIdentity(reply: unknown): ServerIdentity {
  const values = (reply as unknown[]).map(String);
  const [time, run, redis, valkey, redisMode, mode, uptime, role, replicas, replid, replid2, limit, policy, aof] =
    values;
  return {
    run: run ?? '',
    replid: replid ?? '',
    wasPromoted: !NEVER_PROMOTED.test(replid2 ?? ''),
    replicas: Number(replicas ?? 0),
    version: valkey || redis || undefined,
    role: role || undefined,
    mode: redisMode || mode || undefined,
    hasAppendOnlyFile: aof === '1',
    eviction: Number(limit ?? 0) > 0 && policy !== 'noeviction' ? policy : undefined,
    uptime: Number(uptime ?? 0) * 1_000,
    time: Number(time),
    marker: markerFrom(values.slice(1 + INFO_FIELDS.length), Number(time)),
  };
}

/** The same without a marker, from the answer to INFO at a time in milliseconds. */
export function parseInfo(info: string, time: number): ServerIdentity {
  const fields = new Map(info.split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line]));
  const valueOf = (name: InfoField): string => fields.get(name)?.slice(name.length + 1) ?? '';
  return parseServerIdentity([time, ...INFO_FIELDS.map(valueOf)]);
}

/** Why a server must never vote; `undefined` if it may. Protocol 8.10. */
export function faultOf({ role, mode, version }: ServerIdentity): string | undefined {
  if (role === 'slave') return 'it is a replica, whose data may be older than what its primary has acknowledged';
  if (mode === 'cluster')
    return 'it is a node of a cluster, which is not an independent master: give the whole cluster as redis+cluster://host:port';
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST) {
    return `its version ${version} is older than ${OLDEST}.0: upgrade the server, or use another one`;
  }
  return undefined;
}
