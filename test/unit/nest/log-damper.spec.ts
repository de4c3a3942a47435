import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { LogDamper } from '../../../lib/nest/log-damper.js';

function setUp() {
  const clock = new ManualClock();
  const lines: string[] = [];
  const damper = new LogDamper(clock);
  const say = (text: string, name = 'a'): void => damper.write(name, (line) => lines.push(line), text);
  return { clock, lines, damper, say };
}

describe('The lines of a subject that changes all the time', () => {
  it('are all written at first, and whenever it has been quiet for long', async () => {
    const { clock, lines, say } = setUp();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 6; i++) say(`${round} ${i}`);
      await clock.advance(10_000);
    }
    expect(lines).toHaveLength(18);
  });

  it('are written at a growing interval after that, the last one with the number of those that were left out', async () => {
    const { clock, lines, say } = setUp();
    for (let i = 0; i < 1_500; i++) {
      say(`line ${i}`);
      await clock.advance(10);
    }
    expect(lines.slice(0, 7)).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((i) => `line ${i}`),
      expect.stringMatching(/^line 10\d \(\d\d more changes were left out\)$/),
    ]);
    expect(lines.length).toBeLessThan(12);
    await clock.advance(60_000);
    expect(lines.at(-1)).toMatch(/^line 1499 /);
  });

  it('do not keep the lines of another subject back', async () => {
    const { lines, say } = setUp();
    for (let i = 0; i < 50; i++) say('storm');
    say('calm', 'b');
    expect(lines.at(-1)).toBe('calm');
    await Promise.resolve();
  });

  it('end with the present state when the application closes', () => {
    const { lines, say, damper } = setUp();
    for (let i = 0; i < 10; i++) say(`line ${i}`);
    damper.end();
    expect(lines.at(-1)).toBe('line 9 (3 more changes were left out)');
    expect(lines).toHaveLength(7);
  });
});
