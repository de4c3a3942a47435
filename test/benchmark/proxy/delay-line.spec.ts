import { describe, expect, it } from '@jest/globals';
import { DelayLine } from './delay-line.mjs';

describe('The delay line', () => {
  it.each([0.25, 15])('delivers no earlier than after a delay of %d ms', async (delay) => {
    const line = new DelayLine();
    line.delay = delay;
    const start = performance.now();
    await new Promise<void>((resolve) => line.push(resolve));
    expect(performance.now() - start).toBeGreaterThanOrEqual(delay);
  });

  it('delivers at once without a delay', () => {
    const line = new DelayLine();
    let delivered = false;
    line.push(() => (delivered = true));
    expect(delivered).toBe(true);
  });

  it('keeps the order when a delay ends while something is on its way', async () => {
    const line = new DelayLine();
    const delivered: string[] = [];
    line.delay = 5;
    line.push(() => delivered.push('delayed'));
    line.delay = 0;
    await new Promise<void>((resolve) =>
      line.push(() => {
        delivered.push('later');
        resolve();
      }),
    );
    expect(delivered).toEqual(['delayed', 'later']);
  });

  it('carries on after it has been empty', async () => {
    const line = new DelayLine();
    line.delay = 1;
    const pass = () => new Promise<string>((resolve) => line.push(() => resolve('delivered')));
    expect(await pass()).toBe('delivered');
    expect(await pass()).toBe('delivered');
  });
});
