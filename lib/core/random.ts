/** Characters of a token: 21 random bytes in the digits of base64url. */
export const TOKEN_LENGTH = 28;

/** The only source of randomness in this library. Tests inject one with a seed. */
export interface Random {
  /** A new token, of {@link TOKEN_LENGTH} characters. */
  token(): string;
  /** A number in [0, 1). */
  fraction(): number;
}
