import { describe, expect, it } from '@jest/globals';
import { SystemRandom } from '../../../lib/runtime/system-random.js';

describe('Randomness', () => {
  it('gives unique tokens of 21 bytes', () => {
    const random = new SystemRandom();
    const tokens = new Set(Array.from({ length: 10_000 }, () => random.token()));
    expect(tokens.size).toBe(10_000);
    for (const token of tokens) expect(token).toMatch(/^[\w-]{28}$/);
  });

  it('gives evenly distributed fractions from 0 to 1', () => {
    const random = new SystemRandom();
    const fractions = Array.from({ length: 10_000 }, () => random.fraction());
    expect(Math.min(...fractions)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...fractions)).toBeLessThan(1);
    const mean = fractions.reduce((sum, fraction) => sum + fraction) / fractions.length;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.05);
  });

  it('never uses the same bytes for a token and for what follows', () => {
    const random = new SystemRandom();
    const seen = new Set<string | number>();
    for (let i = 0; i < 2_000; i++) seen.add(random.token()).add(random.fraction());
    expect(seen.size).toBeGreaterThan(3_990);
  });
});
