import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findPrometheus } from '../../../../scripts/programs.mjs';
import { FOLDER } from './monitoring.js';

export const programs = findPrometheus();

export interface QueryResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus server on a free port of the loopback interface, which scrapes one target twice a second. */
export class Prometheus implements AsyncDisposable {
  private log = '';

  private constructor(
    private readonly url: string,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {
    child.stderr?.on('data', (part) => (this.log += String(part)));
  }

  /** @param target URL of the application */
  static async start(program: string, target: string): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'redlock-prometheus-'));
    const config = {
      global: { scrape_interval: '500ms', evaluation_interval: '500ms' },
      rule_files: [join(FOLDER, 'prometheus/alerts.yml')],
      scrape_configs: [{ job_name: 'orders', static_configs: [{ targets: [new URL(target).host] }] }],
    };
    // YAML includes JSON.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      program,
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=${address}`,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const server = new Prometheus(`http://${address}`, child, folder);
    await server.ready();
    return server;
  }

  /** The result of an expression at this moment. */
  async query(expression: string): Promise<readonly QueryResult[]> {
    const { result } = await this.get<{ result: QueryResult[] }>(
      `/api/v1/query?query=${encodeURIComponent(expression)}`,
    );
    return result;
  }

  async get<T>(path: string): Promise<T> {
    const response = await fetch(this.url + path);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') throw new Error(`${path}: ${error}`);
    return data;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGKILL');
      await once(this.child, 'exit');
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  private async ready(): Promise<void> {
    const isReady = async (): Promise<boolean> => {
      if (this.child.exitCode !== null) throw new Error(`Prometheus has ended: ${this.log}`);
      return fetch(`${this.url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    };
    try {
      await until(isReady, () => this.log);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }
}

/** Runs `promtool` on the files of the sample, and returns its output. Rejects if it finds a mistake. */
export async function promtool(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd: join(FOLDER, 'prometheus') });
  return stdout;
}

/** Polls until the condition holds: nothing announces what Prometheus has scraped. */
export async function until(condition: () => Promise<boolean>, describe: () => string): Promise<void> {
  const end = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within 30 s: ${describe()}`);
    await sleep(100);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}
