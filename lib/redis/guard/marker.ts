/**
 * What a master stores about its data. The marker is part of the data, so that it is lost or becomes stale together
 * with the locks.
 */
export interface Marker {
  /** Run id of the server that the data belongs to. */
  readonly run: string;
  /** Id of the history of the data that the marker belongs to. */
  readonly replid: string;
  /** Identifies this data. */
  readonly nonce: string;
  /** When the votes of the master begin or began to count, by the clock of the server, in milliseconds. */
  readonly from: number;
  /** How long the votes do not count after the marker was written, in milliseconds. */
  readonly wait: number;
  /** Whether a process that holds a lock has read this marker: `from` must then not be moved to an earlier time. */
  readonly isVetoed: boolean;
  /** Whether the wait was chosen without any master that knew which ttls are in use. */
  readonly isGuess: boolean;
  /** The largest ttl that was announced and may be in use, in milliseconds. */
  readonly maxTtl: number;
  /** The same, including announcements that have ended by the clock of the server. */
  readonly storedTtl: number;
  /** The largest ttl that was announced to every master, in milliseconds: up to it, a ttl needs no new announcement. */
  readonly knownTtl: number;
  /** Whether the server was seen to keep every acknowledged write across restarts. */
  readonly isDurable: boolean;
  /** The process or operator that wrote it. */
  readonly writtenBy: string;
  /** When it was written, by the clock of the server, in milliseconds. */
  readonly writtenAt: number;
  /** Why the master has to wait until `from`. */
  readonly reason: string;
  /** All fields verbatim, for a write that must replace exactly this marker. */
  readonly raw: string;
}

/**
 * The fields of the hash. `ttls` lists the announced ttls, each with the time until which it counts:
 * `10000:1735689600000`. `known` is the largest ttl that was announced to every master.
 */
export const MARKER_FIELDS = [
  ...(['run', 'replid', 'nonce', 'from', 'vetoed', 'guess', 'ttls', 'known', 'durable', 'by', 'at', 'why'] as const),
] as const;

export type MarkerField = (typeof MARKER_FIELDS)[number];

/** Stands for "there is no marker" in a comparison. */
export const NO_MARKER = rawOf([]);

/**
 * KEYS: the marker. ARGV: the run and the history that the server must have (empty: not known), the marker that it must
 * have, and the fields to set. Compares and sets atomically, and returns 0 if the marker has changed or another server
 * has taken the place of the one that was read.
 */
export const MARK = `
local function identity(section, pattern)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and string.match(text, pattern) or ''
end
if identity('server', 'run_id:(%w+)') ~= ARGV[1] then return 0 end
if identity('replication', 'master_replid:(%w+)') ~= ARGV[2] then return 0 end
local marker = redis.call('HMGET', KEYS[1], ${MARKER_FIELDS.map((field) => `'${field}'`).join(', ')})
for i = 1, #marker do marker[i] = marker[i] or '' end
if table.concat(marker, '\\n') ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
return 1`;

/**
 * @param values of {@link MARKER_FIELDS}, empty where a field is absent
 * @param time wall clock of the server, in milliseconds
 */
export function markerFrom(values: readonly string[], time: number): Marker | undefined {
  const [run = '', replid = '', nonce = '', from, vetoed, guess, ttls = '', known, durable, by = '', at, why = ''] =
    values;
  if (nonce === '') return undefined;
  return {
    run,
    replid,
    nonce,
    from: Number(from),
    wait: Math.max(0, Number(from) - Number(at)),
    isVetoed: vetoed === '1',
    isGuess: guess === '1',
    maxTtl: largestOf(ttls, time),
    storedTtl: largestOf(ttls, -Infinity),
    knownTtl: Number(known),
    isDurable: durable === '1',
    writtenBy: by,
    writtenAt: Number(at),
    reason: why,
    raw: rawOf(values),
  };
}

/** Formats an announced ttl for the marker. Both in milliseconds. */
export function announcementOf(ttl: number, until: number): string {
  return `${Math.ceil(ttl)}:${Math.ceil(until)}`;
}

function largestOf(announcements: string, time: number): number {
  if (announcements === '') return 0;
  const pairs = announcements.split(' ').map((pair) => pair.split(':').map(Number) as [number, number]);
  return pairs.reduce((largest, [ttl, until]) => (until > time ? Math.max(largest, ttl) : largest), 0);
}

function rawOf(values: readonly string[]): string {
  const { length } = MARKER_FIELDS;
  return (values.length === length ? values : Array.from({ length }, (_, index) => values[index] ?? '')).join('\n');
}
