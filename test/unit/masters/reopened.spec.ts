import { expect, it } from '@jest/globals';
import type { CircuitBreakerMaster } from '../../../lib/masters/circuit-breaker-master.js';
import { reopened } from '../../../lib/masters/connect.js';
import { TestClock } from '../support/test-clock.js';

// Protocol 4.1
it('A process that is blocked while lost connections are opened again waits for them as long as any other', async () => {
  const clock = new TestClock();
  let open = (): void => undefined;
  const attempt = new Promise<void>((resolve) => (open = resolve));
  const master = { isConnected: false, reopened: () => attempt };
  const ends: number[] = [];
  const masters = [master] as unknown as CircuitBreakerMaster[];
  void reopened({ masters, clock, timeout: 250 })?.then(() => ends.push(clock.now));
  clock.stall(400);
  await clock.advance(100);
  expect(ends).toEqual([]);
  open();
  await clock.settle();
  expect([ends, clock.pendingTimers]).toEqual([[500], 0]);
});
