import { expect, it } from '@jest/globals';
import { buildClockShim } from '../support/clock-shim.js';
import { compileLibrary, start } from '../support/compiled.js';
import { startMasters } from '../support/masters.js';
import { shared } from '../support/shared.js';

const TTL = 3_000;
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 500, restartGuard: false };
const TASK = { resource: 'stepped', ttl: TTL, options: OPTIONS };
const LONG = 60_000;

const compiled = shared(compileLibrary);

it(
  'A process whose wall clock is set loses its lock, and the message names a step of the clock and a suspended machine',
  async () => {
    using shim = buildClockShim();
    if (!shim) {
      console.log('No C compiler, or not Linux: test/unit/redlock/wall-clock.spec.ts alone tests clocks that are set');
      return;
    }
    await using masters = await startMasters(1);
    await using program = start(compiled(), 'wait', { ...TASK, urls: masters.urls }, shim.env);
    expect(await program.line()).toBe('held');
    shim.step(15_000);
    expect(await program.line()).toMatch(/^lost: .*stepped forward, or the machine was suspended, by 1\d s/);
  },
  LONG,
);
