/** A pattern, in the manner of SCAN and of ACL rules, that stands for exactly this text. */
export function literally(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
