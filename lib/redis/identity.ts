/** What a server says about itself, in the moment in which its marker was read. */
export interface Report {
  /** Tells one run of a server from all others; `undefined` when the server does not tell. */
  readonly run: string | undefined;
  readonly version: string | undefined;
  /** Milliseconds since it started, with a resolution of a second. */
  readonly uptime: number;
  readonly role: string | undefined;
  /** Whether it was a replica before: then its data is not as old as it is. */
  readonly wasPromoted: boolean;
  readonly mode: string | undefined;
  /** What is dropped when its memory is full; `undefined` when nothing is. */
  readonly eviction: string | undefined;
  /** Its wall clock, in milliseconds. */
  readonly time: number;
  readonly marker: Marker | undefined;
}

/** What a master keeps about itself, so that it is noticed when it has forgotten everything else. */
export interface Marker {
  /** The run of the server that the marker was written for. */
  readonly run: string;
  /** Tells one marker from all others. */
  readonly nonce: string;
  /** When its votes began or begin to count, on the clock of the server, in milliseconds. */
  readonly from: number;
  /** The largest `maxTtl` that any client has announced, in milliseconds. */
  readonly maxTtl: number;
}

const OLDEST = [7, 0] as const;
const NEVER_PROMOTED = /^(?:0+|)$/;

/** KEYS: the marker, or nothing. INFO can be denied: what it would have told is then empty. */
export const REPORT = `
local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end
local time = redis.call('TIME')
local marker = KEYS[1] and redis.call('HMGET', KEYS[1], 'run', 'nonce', 'from', 'max') or {}
return {
  info('server'), info('replication'), info('memory'),
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
  marker[1] or '', marker[2] or '', marker[3] or '', marker[4] or ''
}`;

/** Reads the server's answer to {@link REPORT}. */
export function reportOf(reply: unknown): Report {
  const [server = '', replication = '', memory = '', time, run, nonce, from, max] = (reply as unknown[]).map(String);
  const promotedFrom = fieldOf(replication, 'master_replid2') ?? '';
  const limit = Number(fieldOf(memory, 'maxmemory') ?? 0);
  const policy = fieldOf(memory, 'maxmemory_policy');
  return {
    run: fieldOf(server, 'run_id'),
    version: fieldOf(server, 'valkey_version') ?? fieldOf(server, 'redis_version'),
    uptime: Number(fieldOf(server, 'uptime_in_seconds') ?? 0) * 1_000,
    role: fieldOf(replication, 'role'),
    wasPromoted: !NEVER_PROMOTED.test(promotedFrom),
    mode: fieldOf(server, 'redis_mode') ?? fieldOf(server, 'server_mode'),
    eviction: limit > 0 && policy !== 'noeviction' ? policy : undefined,
    time: Number(time),
    marker: nonce ? { run: run ?? '', nonce, from: Number(from), maxTtl: Number(max) } : undefined,
  };
}

/** Why a server must not vote at all, if it must not. */
export function faultOf({ role, mode, version }: Report): string | undefined {
  if (role === 'slave') return 'it is a replica, whose data may be older than what its primary has acknowledged';
  if (mode === 'cluster') return 'it is a node of a cluster, which is not an independent master';
  if (version !== undefined && isTooOld(version)) {
    return `its version ${version} is older than ${OLDEST.join('.')}: upgrade the server, or use another one`;
  }
  return undefined;
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
}
