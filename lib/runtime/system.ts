import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import type { Random } from '../redlock/holder.js';

// Multiples of three bytes, each of which is four digits: so every token begins with a digit of its own.
const TOKEN_BYTES = 21;
const FRACTION_BYTES = 3;
const TOKENS_PER_FILL = 256;

// Drawn for many tokens at once, because each call into the operating system is expensive.
export class SystemRandom implements Random {
  private readonly pool = Buffer.alloc(TOKEN_BYTES * TOKENS_PER_FILL);
  // The bytes of the pool as digits of base64url, from which tokens are cut.
  private text = '';
  private next = this.pool.length;

  token(): string {
    const start = this.take(TOKEN_BYTES);
    return this.text.slice((start / 3) * 4, ((start + TOKEN_BYTES) / 3) * 4);
  }

  fraction(): number {
    return this.pool.readUIntBE(this.take(FRACTION_BYTES), FRACTION_BYTES) / 2 ** (8 * FRACTION_BYTES);
  }

  private take(bytes: number): number {
    if (this.next + bytes > this.pool.length) this.fill();
    const start = this.next;
    this.next += bytes;
    return start;
  }

  private fill(): void {
    globalThis.crypto.getRandomValues(this.pool);
    this.text = this.pool.toString('base64url');
    this.next = 0;
  }
}

// Of a signal that is passed to all work of a holder: many listeners are no leak, of which Node would warn.
export function ownController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

// Leaves room for the number of the process in the 100 characters of a name.
const LONGEST_HOST = 80;

export function defaultInstance(): string {
  return `${hostname()
    .replace(/[^!-~]/g, '?')
    .slice(0, LONGEST_HOST)}:${process.pid}`;
}
