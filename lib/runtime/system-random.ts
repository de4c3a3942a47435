import type { Random } from '../core/random.js';

const TOKEN_BYTES = 20;
const TOKENS_PER_FILL = 64;

/** Randomness of the operating system, drawn for many tokens at once because each call into it is expensive. */
export class SystemRandom implements Random {
  private readonly pool = Buffer.alloc(TOKEN_BYTES * TOKENS_PER_FILL);
  /** The bytes of the pool as hexadecimal digits, from which tokens are cut. */
  private text = '';
  private next = this.pool.length;

  token(): string {
    const start = this.take(TOKEN_BYTES);
    return this.text.slice(2 * start, 2 * (start + TOKEN_BYTES));
  }

  fraction(): number {
    const i = this.take(4);
    return this.pool.readUInt32BE(i) / 2 ** 32;
  }

  private take(bytes: number): number {
    if (this.next + bytes > this.pool.length) this.fill();
    const start = this.next;
    this.next += bytes;
    return start;
  }

  private fill(): void {
    globalThis.crypto.getRandomValues(this.pool);
    this.text = this.pool.toString('hex');
    this.next = 0;
  }
}
