/** Escapes a string, so that as a pattern of SCAN or of an ACL rule it matches only itself. */
export function literally(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
