import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { JobReport } from 'nestjs-redlock/schedule';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { PAGES } from '../src/import.job.js';
import { Program } from '../../../test/support/program.js';

const NAMES = ['one', 'two', 'three'];
const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));
/** The import is due every ten seconds, and a killed instance blocks it for four. */
jest.setTimeout(120_000);

type Instance = Program & { readonly name: string };

let store: string;
const masters: RedisServer[] = [];
const instances: Instance[] = [];

beforeEach(async () => {
  store = await mkdtemp(join(tmpdir(), 'redlock-sample-'));
  for (let i = 0; i < 3; i++) masters.push(await RedisServer.start());
  const REDIS_URLS = masters.map(({ url }) => url).join(',');
  for (const name of NAMES) {
    const program = Program.start(PROGRAM, { PORT: '0', INSTANCE: name, STORE: store, REDIS_URLS });
    instances.push(Object.assign(program, { name }));
  }
});

afterEach(async () => {
  const started = instances.splice(0);
  for (const instance of started) instance.kill('SIGKILL');
  await Promise.all([...started.map(({ ended }) => ended), ...masters.splice(0).map((master) => master.stop())]);
  await rm(store, { recursive: true, force: true });
});

/** Resolves with the first result that is not `undefined`; rejects with the logs if all instances have ended. */
async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  const noneLeft = Promise.all(instances.map(({ ended }) => ended)).then(() => 'none left');
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if ((await Promise.race([noneLeft, sleep(20)])) === 'none left') {
      throw new Error(instances.map(({ log }) => log).join('\n'));
    }
  }
}

async function linesOf(log: string): Promise<string[][]> {
  const text = await readFile(join(store, log), 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '));
}

interface Page {
  readonly page: number;
  readonly instance: string;
  readonly attempt: number;
}

/** The pages that were imported for the first tick, in the order of time. */
async function pages(): Promise<Page[]> {
  const lines = await linesOf('import.log');
  const [first] = lines[0] ?? [];
  return lines
    .filter(([tick]) => tick === first)
    .map(([, page, attempt, instance]) => ({ page: Number(page), attempt: Number(attempt), instance: instance! }));
}

/** Ends the instance that has imported some pages, and resolves with all pages when the last one is imported. */
async function endInTheMiddle(signal: 'SIGTERM' | 'SIGKILL'): Promise<{ ended: Instance; imported: Page[] }> {
  const name = await until(async () => (await pages())[5]?.instance);
  const ended = instances.find((instance) => instance.name === name)!;
  ended.kill(signal);
  await ended.ended;
  const imported = await until(async () => {
    const all = await pages();
    return all.some(({ page }) => page === PAGES - 1) ? all : undefined;
  });
  return { ended, imported };
}

/** The finished attempts at the first tick, newest first, as an instance shows them that did not end. */
async function attempts({ ended }: { ended: Instance }): Promise<object[]> {
  const [other] = instances.filter((instance) => instance !== ended);
  const [, url] = /listens on (http:\S+)/.exec(other!.log) ?? [];
  const [[tick] = []] = await linesOf('import.log');
  return until(async () => {
    const response = await fetch(`${url}/jobs`);
    // Too few masters answered in time, on a busy machine.
    if (response.status === 503) return undefined;
    const jobs = (await response.json()) as JobReport[];
    const runs = jobs.find((job) => job.name === 'import')!.runs.filter((run) => String(run.scheduledFor) === tick);
    if (runs[0]?.outcome !== 'ok') return undefined;
    return runs.map(({ instance, attempt, outcome }) => ({ instance, attempt, outcome }));
  });
}

const numbers = (all: readonly Page[]): number[] => all.map(({ page }) => page);
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('Three processes on three Redis servers', () => {
  it('make each report once', async () => {
    const lines = await until(async () => {
      const all = await linesOf('reports.log');
      return all.length >= 4 ? all : undefined;
    });
    const seconds = lines.filter(([, attempt]) => attempt === '1').map(([second]) => second);
    expect(new Set(seconds).size).toBe(seconds.length);
  });

  it('go on with an import where the instance was that is killed', async () => {
    const { ended, imported } = await endInTheMiddle('SIGKILL');
    const before = imported.filter(({ instance }) => instance === ended.name);
    const after = imported.filter(({ instance }) => instance !== ended.name);
    const next = after[0]!.page;
    // Only the page may be imported twice after which the instance was killed before it set the checkpoint.
    expect([before.length - 1, before.length]).toContain(next);
    expect(numbers(before)).toEqual(range(0, before.length));
    expect(numbers(after)).toEqual(range(next, PAGES));
    expect(new Set(before.map(({ attempt }) => attempt))).toEqual(new Set([1]));
    expect(new Set(after.map(({ attempt }) => attempt))).toEqual(new Set([2]));
    await expect(attempts({ ended })).resolves.toEqual([
      { instance: after[0]!.instance, attempt: 2, outcome: 'ok' },
      { instance: ended.name, attempt: 1, outcome: 'unfinished' },
    ]);
  });

  it('import no page twice when the instance is asked to end', async () => {
    const { ended, imported } = await endInTheMiddle('SIGTERM');
    expect(numbers(imported)).toEqual(range(0, PAGES));
    expect(imported.at(-1)!.instance).not.toBe(ended.name);
    await expect(attempts({ ended })).resolves.toEqual([
      { instance: imported.at(-1)!.instance, attempt: 2, outcome: 'ok' },
      { instance: ended.name, attempt: 1, outcome: 'unfinished' },
    ]);
  });
});
