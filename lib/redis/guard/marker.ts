// What a master stores about its data. The marker is part of the data, so that it is lost or becomes stale together
// with the locks.
export interface Marker {
  readonly run: string;
  readonly replid: string;
  readonly nonce: string;
  // Identifies this data as long as only its clock was in doubt: see `core/state`.
  readonly generation: string;
  // The master was empty at the same time as all others, so that it has never lost data.
  readonly isFirst: boolean;
  // The master was empty when the generation began.
  readonly wasEmpty: boolean;
  // When the votes of the master begin or began to count, by the clock of the server, in milliseconds.
  readonly from: number;
  // How long the votes do not count after the marker was written, in milliseconds.
  readonly wait: number;
  // A process that holds a lock has read this marker: `from` must then not be moved to an earlier time.
  readonly isVetoed: boolean;
  // The wait was chosen without any master that knew which ttls are in use.
  readonly isGuess: boolean;
  // The largest ttl that was announced and may be in use, in milliseconds.
  readonly maxTtl: number;
  // The same, including announcements that have ended by the clock of the server.
  readonly storedTtl: number;
  // The largest ttl that was announced to every master, in milliseconds: up to it, a ttl needs no new announcement.
  readonly knownTtl: number;
  readonly writtenBy: string;
  readonly writtenAt: number;
  readonly reason: string;
  // All fields verbatim, for a write that must replace exactly this marker.
  readonly raw: string;
}

// `ttls` lists the announced ttls, each with the time until which it counts: `10000:1735689600000`. `known` is the
// largest ttl that was announced to every master.
// Protocol 2.3
export const MARKER_FIELDS = [
  ...(['run', 'replid', 'nonce', 'from', 'vetoed', 'guess', 'ttls', 'known', 'by', 'at', 'why'] as const),
  ...(['generation', 'first'] as const),
] as const;

// Values of `first`: all masters were empty; this one was, and nothing is known about the others.
export const FIRST = '1';
export const EMPTY = 'empty';

export type MarkerField = (typeof MARKER_FIELDS)[number];

const NO_MARKER = rawOf([]);

// Announcements change these fields all the time: a change that does not replace them need not compare them.
export const ANNOUNCED: readonly MarkerField[] = ['ttls', 'known'];

interface Basis {
  readonly run: string;
  readonly replid: string;
  // Wall clock of the server when it was read, in milliseconds. `undefined`: the change may arrive at any time.
  readonly time: number | undefined;
  readonly marker: Marker | undefined;
}

export type MarkerChange = Partial<Record<MarkerField, string | number>>;

export function markArguments({ run, replid, time, marker }: Basis, change: MarkerChange): (string | number)[] {
  const isWhole = marker === undefined || ANNOUNCED.some((field) => field in change);
  const expected = isWhole ? (marker?.raw ?? NO_MARKER) : withoutAnnouncements(marker.raw);
  return [run, replid, time ?? '', isWhole ? 1 : 0, expected, ...Object.entries(change).flat()];
}

function withoutAnnouncements(raw: string): string {
  const values = raw.split('\n');
  return MARKER_FIELDS.map((field, index) => (ANNOUNCED.includes(field) ? '' : values[index])).join('\n');
}

// `values` are those of `MARKER_FIELDS`, empty where a field is absent; `time` is the wall clock of the server, in
// milliseconds.
export function markerFrom(values: readonly string[], time: number): Marker | undefined {
  // In the order of `MARKER_FIELDS`.
  const [run = '', replid = '', nonce = '', from = '', vetoed, guess, ttls = '', known = '', ...rest] = values;
  const [by = '', at = '', why = '', generation = '', first] = rest;
  if (nonce === '') return undefined;
  return {
    run,
    ...{ replid, nonce, from: Number(from), wait: Math.max(0, Number(from) - Number(at)) },
    ...{ isVetoed: vetoed === '1', isGuess: guess === '1', knownTtl: Number(known) },
    ...{ maxTtl: largestOf(ttls, time), storedTtl: largestOf(ttls, -Infinity) },
    ...{ writtenBy: by, writtenAt: Number(at), reason: why, generation },
    ...{ isFirst: first === FIRST, wasEmpty: first === FIRST || first === EMPTY },
    raw: rawOf(values),
  };
}

// Both in milliseconds.
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
