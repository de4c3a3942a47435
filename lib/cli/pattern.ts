export { literally } from '../redis/permissions.js';

/** Whether a text matches a pattern of SCAN, which compares bytes. */
export function matcherOf(pattern: string): (text: string) => boolean {
  const source = bytes(pattern).replace(/\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]|(.)/gs, (...groups: string[]) => {
    const [, escaped, negation, members, single] = groups;
    if (members !== undefined) return members === '' ? NOTHING : `[${negation}${classOf(members)}]`;
    if (single === '*') return '.*';
    if (single === '?') return '.';
    return escapeFully(escaped ?? single ?? '');
  });
  const expression = new RegExp(`^(?:${source})$`, 's');
  return (text) => expression.test(bytes(text));
}

/** An empty class of a pattern matches no character. */
const NOTHING = '(?!)';

function classOf(members: string): string {
  return members.replace(/\\(.)|([^-])/gs, (_, escaped?: string, other?: string) =>
    escapeFully(escaped ?? other ?? ''),
  );
}

function escapeFully(character: string): string {
  return character.replace(/[^A-Za-z0-9]/gs, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function bytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}
