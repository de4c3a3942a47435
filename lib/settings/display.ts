import { counted, printable, shorten, showNames, showText } from '../redlock/names.js';

export { counted, printable, showNames };

// It may be an address with credentials.
const ADDRESS = /@|%40|:\/\//i;
// Parameters after a wrong separator.
const MISPLACED = /(?:[&;]|(?<![^/,])[^/,&;]*=).*/s;
// What user and password of a URL contain only encoded, and the connection strings of other ecosystems between parts.
const FOREIGN = /[\s,;=&"'{}]|^[^:]*:\d+:/;
// `length` and `from` in milliseconds. The largest unit comes first.
const UNITS = [
  { unit: 'days', length: 86_400_000, from: 2 * 86_400_000 },
  { unit: 'h', length: 3_600_000, from: 2 * 3_600_000 },
  { unit: 'min', length: 60_000, from: 2 * 60_000 },
  { unit: 's', length: 1_000, from: 1_000 },
];

// Short, on one line, and without credentials.
export function formatValue(value: unknown): string {
  try {
    if (typeof value !== 'string') return shorten(showObject(value));
    return showText(ADDRESS.test(value) ? redactUrl(value) : value);
  } catch {
    return typeof value;
  }
}

// Without user, password and parameters, even after a wrong separator.
export function redactUrl(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  const start = rest.lastIndexOf('@') + 1;
  const host = rest.slice(start);
  // It is undecidable whether an @ precedes the host or belongs to a password or a parameter.
  const login = rest.slice(0, start);
  if (/[/?#]/.test(login) || /%40/i.test(host) || FOREIGN.test(login)) return `${scheme}***`;
  const shown = host.replace(/[?#].*/s, '').replace(MISPLACED, '***');
  return `${scheme}${start > 0 ? '***@' : ''}${shown}`;
}

export function votesOf(voting: number, masters: number): string {
  return `${voting} of ${counted(masters, 'master')} ${masters === 1 ? 'votes' : 'vote'}`;
}

export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  const size = Math.abs(milliseconds);
  const larger = UNITS.find(({ from }) => size >= from);
  if (larger) return `${(milliseconds / larger.length).toFixed(1)} ${larger.unit}`;
  return `${milliseconds.toFixed(size < 10 ? 1 : 0)} ms`;
}

// By their kind only, because they may contain a password.
function showObject(value: unknown): string {
  if (typeof value === 'function') return `function ${value.name}`.trim();
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return `an object (${classOf(value)})`;
  return typeof value === 'bigint' ? `${value}n` : String(value);
}

function classOf({ constructor }: { readonly constructor?: unknown }): string {
  return typeof constructor === 'function' ? constructor.name : 'no class';
}
