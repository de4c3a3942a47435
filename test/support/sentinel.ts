import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisServer } from '../../scripts/redis-servers.mjs';
import { command } from './command.js';
import { deadPort } from './dead-port.js';
import { eventually } from './eventually.js';

/** Starts a sentinel and kills it when its standard input ends: with the test, or with the process of the test. */
const SCRIPT = '"$1" "$2" --sentinel & pid=$!; read -r done; kill -9 "$pid"; wait "$pid"';

/** A sentinel that watches one primary with its replica, and that fails over without the consent of other sentinels. */
export class Sentinel implements AsyncDisposable {
  private constructor(
    readonly port: number,
    private readonly end: () => Promise<void>,
  ) {}

  /** Resolves when the sentinel knows the primary and its replica. `config` has more lines of its configuration. */
  static async watch(name: string, primary: number, config: readonly string[]): Promise<Sentinel> {
    const port = await deadPort();
    const folder = await mkdtemp(join(tmpdir(), 'redlock-sentinel-'));
    const file = join(folder, 'sentinel.conf');
    const lines = [
      ...['bind 127.0.0.1', `port ${port}`, `dir ${folder}`],
      ...[`sentinel monitor ${name} 127.0.0.1 ${primary} 1`, `sentinel down-after-milliseconds ${name} 500`],
      ...[`sentinel failover-timeout ${name} 5000`, ...config],
    ];
    await writeFile(file, lines.join('\n'));
    // The binary acts according to its file name, and some packages install it under the name of another program.
    const binary = findRedisServer() ?? 'redis-server';
    const program = join(folder, binary.includes('valkey') ? 'valkey-server' : 'redis-server');
    await symlink(binary, program);
    const shell = spawn('/bin/sh', ['-c', SCRIPT, 'sentinel', program, file], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const ended = once(shell, 'exit');
    const sentinel = new Sentinel(port, async () => {
      shell.stdin.end();
      await ended;
      await rm(folder, { recursive: true, force: true });
    });
    try {
      await eventually(async () => (await sentinel.replicas(name)) === 1);
      return sentinel;
    } catch (error) {
      await sentinel.end();
      throw error;
    }
  }

  /** Port of the current primary. */
  async primary(name: string): Promise<number> {
    const address = (await command(this.port, 'SENTINEL', 'get-master-addr-by-name', name)) as string[];
    return Number(address[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  private async replicas(name: string): Promise<number> {
    const list = await command(this.port, 'SENTINEL', 'replicas', name).catch(() => []);
    return (list as unknown[]).length;
  }
}
