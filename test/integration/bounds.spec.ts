import { describe, expect, it } from '@jest/globals';
import { compileLibrary, start } from '../support/compiled.js';
import { leftoversOn } from '../support/leftovers.js';
import { startMasters } from '../support/masters.js';
import type { SoakReport } from '../processes/soak.js';
import { shareOf } from '../support/share.js';
import { sharedMasters } from './support/shared-masters.js';
import { shared } from '../support/shared.js';

/** Defaults for a short run. The full figures are 100,000 cycles over 10,000 keys, and 30,000 ms. */
const { SOAK_CYCLES = '20000', SOAK_KEYS = '2000', SOAK_MS = '4000' } = process.env;
const MEGABYTE = 2 ** 20;

const masters = sharedMasters(3);
const compiled = shared(compileLibrary);

describe('A process under load', () => {
  it(
    'leaves no heap, no handle and no key behind after many cycles over many keys',
    async () => {
      const task = { urls: masters.urls, cycles: shareOf(Number(SOAK_CYCLES)), keys: shareOf(Number(SOAK_KEYS)) };
      const report = await soak(task);
      expect(report.cycles).toBeGreaterThanOrEqual(task.cycles);
      expect(report.heap[1] - report.heap[0]).toBeLessThan(2 * MEGABYTE);
      // The first wait, which happens only on a busy machine, opens a connection for notifications to each master. The
      // connections stay open.
      expect(report.handles[1]).toBeLessThanOrEqual(report.handles[0] + masters.servers.length);
      expect(await leftoversOn(masters.servers.map(({ port }) => port))).toBe(0);
    },
    60_000 + Number(SOAK_CYCLES),
  );

  it(
    'keeps neither requests nor memory for one hung master',
    async () => {
      await using masters = await startMasters(5);
      const milliseconds = shareOf(Number(SOAK_MS));
      const report = await soak({ urls: masters.urls, milliseconds, keys: 1_000, hang: masters.servers[2]?.pid });
      // After the silence has been noticed, each second adds a probe and the releases that the probe leaves behind.
      expect(report.pending[1] - report.pending[0]).toBeLessThan(20 + (3 * milliseconds) / 1_000);
      expect(report.heap[1] - report.heap[0]).toBeLessThan(2 * MEGABYTE);
    },
    60_000 + Number(SOAK_MS),
  );

  async function soak(task: object): Promise<SoakReport> {
    await using program = start(compiled(), 'soak', task);
    const report = JSON.parse(await program.line()) as SoakReport;
    expect(await program.ended).toBe(0);
    return report;
  }
});

it.each(['up', 'down', 'hung', 'hung from the start', 'one of each'])(
  'After close, the process exits by itself when the masters are %s',
  async (state) => {
    const [a, b] = masters.servers;
    if (state === 'down') await Promise.all(masters.servers.map((server) => server.kill()));
    if (state === 'hung from the start') for (const server of masters.servers) server.pause();
    if (state === 'one of each') await a!.kill();
    const hang = state === 'hung' ? masters.servers.map(({ pid }) => pid) : state === 'one of each' ? [b!.pid] : [];
    const lock = state !== 'down' && state !== 'hung from the start';
    await using program = start(compiled(), 'close', { urls: masters.urls, hang, lock });
    expect(await program.line()).toBe('closed');
    const closedAt = performance.now();
    expect(await program.ended).toBe(0);
    // Nothing is left to wait for, so the exit takes far less time than any timer in the process.
    expect(performance.now() - closedAt).toBeLessThan(5_000);
  },
);
