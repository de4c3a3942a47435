const SHOWN_LENGTH = 100;
const MAX_SHOWN = 10;
// It may be an address with credentials.
const ADDRESS = /@|%40|:\/\//i;
// Parameters after a wrong separator.
const MISPLACED = /(?:[&;]|(?<![^/,])[^/,&;]*=).*/s;
// What user and password of a URL contain only encoded, and the connection strings of other ecosystems between parts.
const FOREIGN = /[\s,;=&"'{}]|^[^:]*:\d+:/;
// A terminal or a log viewer could misinterpret them.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
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

export function showNames(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '';
  return names.slice(0, MAX_SHOWN).map(showText).join(', ') + more || 'nothing';
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

// Such as `1 master`, `2 masters`.
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
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

function showText(text: string): string {
  return shorten(JSON.stringify(text));
}

function shorten(text: string): string {
  const beginning = printable(text.slice(0, SHOWN_LENGTH));
  return text.length > SHOWN_LENGTH ? `${beginning}…` : beginning;
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escape);
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
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
