import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ClockShim, buildClockShim } from '../support/clock-shim.js';
import { type Compiled, compileLibrary, type Program, start } from '../support/compiled.js';
import { startMasters } from '../support/masters.js';

const TTL = 3_000;
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 500 };
const LONG = 60_000;

/** How many masters there are, and whether the restart guard is on. */
const DEPLOYMENTS = [
  ['three masters', 3, {}],
  ['three masters without the guard', 3, { restartGuard: false }],
  ['one master', 1, {}],
] as const;

describe('A process whose wall clock is set', () => {
  let compiled: Compiled;
  let shim: ClockShim | undefined;

  beforeAll(async () => {
    compiled = await compileLibrary();
    shim = buildClockShim();
    if (!shim) console.log('No C compiler, or not Linux: test/unit/core/doubt.spec.ts alone tests clocks that are set');
  }, LONG);
  afterAll(async () => {
    await compiled[Symbol.asyncDispose]();
    shim?.[Symbol.dispose]();
  });

  /** Starts a process that holds a lock. */
  async function hold(urls: readonly string[], options: object, { env }: ClockShim): Promise<Program> {
    const program = start(compiled, 'hold', { urls, ttl: TTL, options: { ...OPTIONS, ...options } }, env);
    expect(await program.line()).toBe('held');
    return program;
  }

  it.each(DEPLOYMENTS.flatMap((one) => [15_000, 3_600_000].map((by) => [...one, by] as const)))(
    'keeps its lock: %s, %s, %j, forward by %i ms',
    async (_, count, options, by) => {
      if (!shim) return;
      await using masters = await startMasters(count);
      shim.step(0);
      await using program = await hold(masters.urls, options, shim);
      shim.step(by);
      expect(await program.line()).toBe('kept');
    },
    LONG,
  );

  it.each(DEPLOYMENTS)(
    'loses its lock if the clocks of its masters show that the time has passed: %s',
    async (_, count, options) => {
      if (!shim) return;
      shim.step(0);
      // The machine of the process stood still: afterwards, all wall clocks are right.
      await using masters = await startMasters(count, { env: shim.env });
      await using program = await hold(masters.urls, options, shim);
      shim.step(15_000);
      expect(await program.line()).toMatch(/^lost: .*suspended, or its wall clock was set forward, by 1\d{4} ms/);
    },
    LONG,
  );
});
