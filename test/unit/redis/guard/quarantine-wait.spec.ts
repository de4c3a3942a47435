import { describe, expect, it } from '@jest/globals';
import { QuarantineWait } from '../../../../lib/redis/guard/quarantine-wait.js';

const at = (milliseconds: number) => ({ monotonic: 1_000 + milliseconds, wall: 1_700_000_000_000 + milliseconds });
const FROM = 1_700_000_050_000;

// Protocol 8.2
describe('QuarantineWait', () => {
  it('ends too early if the clock of the server was set forward while this process watched', () => {
    const wait = new QuarantineWait();
    wait.watch(FROM, 10_000, at(0));
    expect(wait.endsTooEarly(FROM, at(9_977))).toBe(true);
    expect(wait.endsTooEarly(FROM, at(9_978))).toBe(false);
  });

  it('does not end too early if another end was watched, or none', () => {
    const wait = new QuarantineWait();
    expect(wait.endsTooEarly(FROM, at(0))).toBe(false);
    wait.watch(FROM, 10_000, at(0));
    expect(wait.endsTooEarly(FROM - 1, at(1))).toBe(false);
    wait.forget();
    expect(wait.endsTooEarly(FROM, at(1))).toBe(false);
  });

  it('knows how much was left at a reading, less the time since', () => {
    const wait = new QuarantineWait();
    expect(wait.leftAt(at(0))).toBe(0);
    wait.watch(FROM, 10_000, at(0));
    expect(wait.leftAt(at(2_500))).toBe(7_500);
  });

  it('reports at least one millisecond until its end', () => {
    const wait = new QuarantineWait();
    expect(wait.remainingAt(at(0))).toBe(1);
    wait.limit(at(0), 3_000);
    expect(wait.remainingAt(at(1_000))).toBe(2_000);
    expect(wait.remainingAt(at(5_000))).toBe(1);
  });
});
