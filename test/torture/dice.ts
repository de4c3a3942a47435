/** Seeded randomness: the same seed gives the same numbers. */
export class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0 || 1;
    // Nearby seeds start with similar numbers, so the first ones are discarded.
    for (let i = 0; i < 20; i++) this.fraction();
  }

  /**
   * A number from 0 to below 1.
   * @see https://www.jstatsoft.org/article/view/v008i14 xorshift
   */
  fraction(): number {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    return (this.state >>> 0) / 2 ** 32;
  }

  /** A number from `least` to below `most`. */
  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.fraction() * list.length)] as T;
  }

  /** The same elements in random order. */
  shuffle<T>(list: readonly T[]): T[] {
    const rest = [...list];
    const shuffled: T[] = [];
    while (rest.length > 0) shuffled.push(...rest.splice(Math.floor(this.fraction() * rest.length), 1));
    return shuffled;
  }
}
