import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type Compiled, compileLibrary, start } from '../support/compiled.js';
import { startMasters, type Masters } from '../support/masters.js';
import { shareOf } from '../support/share.js';

jest.setTimeout(60_000);

let compiled: Compiled;
beforeAll(async () => {
  compiled = await compileLibrary();
});
afterAll(async () => {
  await compiled[Symbol.asyncDispose]();
});

describe('Several processes', () => {
  it.each([1, 3])('never lose an update with %i masters', async (count) => {
    await using masters = await startMasters(count);
    await expectNoLostUpdate(masters.urls);
  });

  it('never lose an update while the masters hang one after the other', async () => {
    await using masters = await startMasters(3);
    const work = new AbortController();
    const faults = hangInTurn(masters, work.signal);
    await expectNoLostUpdate(masters.urls).finally(() => work.abort());
    await faults;
  });

  async function hangInTurn({ servers }: Masters, signal: AbortSignal): Promise<void> {
    for (let i = 0; !signal.aborted; i = (i + 1) % servers.length) {
      servers[i]?.pause();
      await sleep(150, undefined, { signal }).catch(() => undefined);
      servers[i]?.resume();
      await sleep(50, undefined, { signal }).catch(() => undefined);
    }
  }

  async function expectNoLostUpdate(urls: readonly string[]): Promise<void> {
    const [processes, times] = [4, shareOf(40)];
    const folder = await mkdtemp(join(tmpdir(), 'redlock-exclusion-'));
    const programs: ReturnType<typeof start>[] = [];
    try {
      await writeFile(join(folder, 'number'), '0');
      for (let i = 0; i < processes; i++) programs.push(start(compiled, 'increment', { urls, folder, times }));
      expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual(programs.map(() => 0));
      expect(await readFile(join(folder, 'number'), 'utf8')).toBe(String(processes * times));
    } finally {
      for (const program of programs) program.kill();
      await rm(folder, { recursive: true, force: true });
    }
  }
});
