import { type Random, TOKEN_LENGTH } from '../../../lib/redlock/holder.js';

/** Seeded randomness (sfc32): the same seed gives the same numbers on every machine. */
export class Chance implements Random {
  private a: number;
  private b: number;
  private c = 0x9e3779b9;
  private counter = 1;

  constructor(seed: number, stream = 0) {
    this.a = seed | 0;
    this.b = (Math.floor(seed / 2 ** 32) ^ Math.imul(stream + 1, 0x85ebca6b)) | 0;
    for (let i = 0; i < 12; i++) this.next();
  }

  next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return sum >>> 0;
  }

  fraction(): number {
    return this.next() / 2 ** 32;
  }

  /** As long as a real token, with fewer digits that differ. */
  token(): string {
    return (this.next().toString(16) + this.next().toString(16).padStart(8, '0')).padStart(TOKEN_LENGTH, '0');
  }

  whole(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  /** A number from `least` to `most`, on a logarithmic scale: every order of magnitude is equally likely. */
  spread(least: number, most: number): number {
    return least * (most / least) ** this.fraction();
  }

  happens(share: number): boolean {
    return this.fraction() < share;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.fraction() * choices.length)] as T;
  }
}
