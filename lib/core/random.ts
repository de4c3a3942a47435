/** The only source of randomness in this library. Tests inject one with a seed. */
export interface Random {
  /** A new token: 20 random bytes, as 40 hexadecimal digits. */
  token(): string;
  /** A number in [0, 1). */
  fraction(): number;
}
