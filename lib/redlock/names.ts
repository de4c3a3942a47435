const SHOWN_LENGTH = 100;
const MAX_SHOWN = 10;
// A terminal or a log viewer could misinterpret them.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export function showNames(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '';
  return names.slice(0, MAX_SHOWN).map(showText).join(', ') + more || 'nothing';
}

// Such as `1 master`, `2 masters`.
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function showText(text: string): string {
  return shorten(JSON.stringify(text));
}

export function shorten(text: string): string {
  const beginning = printable(text.slice(0, SHOWN_LENGTH));
  return text.length > SHOWN_LENGTH ? `${beginning}…` : beginning;
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escape);
}

function escape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}
