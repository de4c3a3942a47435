/** The only source of chance in this library. Tests inject one with a seed. */
export interface Random {
  /** A new token: 20 random bytes, as 40 hexadecimal digits. */
  token(): string;
  /** A number in [0, 1). */
  fraction(): number;
}

const TOKEN_BYTES = 20;
const TOKENS_PER_FILL = 256;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Randomness of the operating system, drawn for many tokens at once because each call into it is expensive. */
export class SystemRandom implements Random {
  private readonly pool = new Uint8Array(TOKEN_BYTES * TOKENS_PER_FILL);
  private next = this.pool.length;

  token(): string {
    let token = '';
    for (let i = this.take(TOKEN_BYTES), end = i + TOKEN_BYTES; i < end; i++)
      token += HEX[this.pool[i] as number] as string;
    return token;
  }

  fraction(): number {
    const i = this.take(4);
    return new DataView(this.pool.buffer).getUint32(i) / 2 ** 32;
  }

  private take(bytes: number): number {
    if (this.next + bytes > this.pool.length) {
      globalThis.crypto.getRandomValues(this.pool);
      this.next = 0;
    }
    const start = this.next;
    this.next += bytes;
    return start;
  }
}
