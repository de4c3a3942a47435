import { type Marker, MARKER_FIELDS, markerFrom } from './guard/marker.js';

/** The identity of a server and the state of its data, read atomically with its marker. */
export interface ServerReport {
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

/**
 * The marker is KEYS[1] or ARGV[1], or there is none. INFO can be denied: its sections are empty then. A node of a
 * cluster may not own the marker's key; the error is ignored, because the node is refused for another reason.
 */
export const REPORT = `
local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end
local time = redis.call('TIME')
local report = {
  info('server'), info('replication'), info('memory'), info('persistence'),
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
}
local fields = ${luaList(MARKER_FIELDS)}
local name = KEYS[1] or ARGV[1]
local marker = name and redis.pcall('HMGET', name, unpack(fields)) or {}
if marker.err and not string.find(report[1], '_mode:cluster', 1, true) then return marker end
for i = 1, #fields do report[#report + 1] = marker[i] or '' end
return report`;

/** Reads the server's answer to {@link REPORT}. */
export function reportOf(reply: unknown): ServerReport {
  const [server = '', replication = '', memory = '', persistence = '', time, ...marker] = (reply as unknown[]).map(
    String,
  );
  const limit = Number(fieldOf(memory, 'maxmemory') ?? 0);
  const policy = fieldOf(memory, 'maxmemory_policy');
  return {
    run: fieldOf(server, 'run_id') ?? '',
    replid: fieldOf(replication, 'master_replid') ?? '',
    wasPromoted: !NEVER_PROMOTED.test(fieldOf(replication, 'master_replid2') ?? ''),
    replicas: Number(fieldOf(replication, 'connected_slaves') ?? 0),
    version: fieldOf(server, 'valkey_version') ?? fieldOf(server, 'redis_version'),
    role: fieldOf(replication, 'role'),
    mode: fieldOf(server, 'redis_mode') ?? fieldOf(server, 'server_mode'),
    hasAppendOnlyFile: fieldOf(persistence, 'aof_enabled') === '1',
    eviction: limit > 0 && policy !== 'noeviction' ? policy : undefined,
    uptime: Number(fieldOf(server, 'uptime_in_seconds') ?? 0) * 1_000,
    time: Number(time),
    marker: markerFrom(marker, Number(time)),
  };
}

/** Why a server must never vote; `undefined` if it may. */
export function faultOf({ role, mode, version }: ServerReport): string | undefined {
  if (role === 'slave') return 'it is a replica, whose data may be older than what its primary has acknowledged';
  if (mode === 'cluster') return 'it is a node of a cluster, which is not an independent master';
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST) {
    return `its version ${version} is older than ${OLDEST}.0: upgrade the server, or use another one`;
  }
  return undefined;
}

/** Lines of INFO end in CR LF. */
function fieldOf(info: string, name: string): string | undefined {
  const line = `${name}:`;
  const before = info.startsWith(line) ? -1 : info.indexOf(`\n${line}`);
  if (before < 0 && !info.startsWith(line)) return undefined;
  const from = before + 1 + line.length;
  const end = info.indexOf('\n', from);
  return info.slice(from, end < 0 ? undefined : end).trim();
}

function luaList(names: readonly string[]): string {
  return `{ ${names.map((name) => `'${name}'`).join(', ')} }`;
}
