import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';

/** How long a server may take to start, in milliseconds. */
const STARTS_WITHIN = 20_000;

/**
 * Waits until its stdin closes, which happens however its parent process ends. Then it ends the server and deletes its
 * files.
 */
const GUARD = `
"$1" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off >"$2/log" 2>&1 &
read -r _
kill -INT $!
wait
rm -rf "$2"`;

/** A private PostgreSQL server in a temporary folder, which also holds its socket. */
export class Postgres {
  private constructor(
    private readonly folder: string,
    private readonly guard: ChildProcess,
  ) {}

  /** @param programs folder of the server's programs */
  static async start(programs: string): Promise<Postgres> {
    const folder = mkdtempSync(join(tmpdir(), 'pg-'));
    try {
      const user = unprivileged(folder);
      const initdb = [...['-D', join(folder, 'data')], ...['-U', 'postgres', '-A', 'trust', '-E', 'UTF8'], '--no-sync'];
      await promisify(execFile)(join(programs, 'initdb'), [...initdb, '--no-locale'], { cwd: folder, ...user });
      const command = ['-c', GUARD, 'postgres-guard', join(programs, 'postgres'), folder];
      // A process group of its own: Ctrl-C in a terminal must not end the guard before it has cleaned up.
      const stdio: ['pipe', 'ignore', 'ignore'] = ['pipe', 'ignore', 'ignore'];
      const guard = spawn('/bin/sh', command, { cwd: folder, detached: true, stdio, ...user });
      const server = new Postgres(folder, guard);
      await server.untilReady();
      return server;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get url(): string {
    return `postgres://postgres@/postgres?host=${encodeURIComponent(this.folder)}`;
  }

  async stop(): Promise<void> {
    const ended = once(this.guard, 'close');
    this.guard.stdin?.end();
    await ended;
    // Another user than root may not delete an entry of the temporary folder. The process that created it may.
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async untilReady(): Promise<void> {
    const end = performance.now() + STARTS_WITHIN;
    for (;;) {
      const client = new pg.Client({ connectionString: this.url });
      try {
        await client.connect();
        return;
      } catch (error) {
        if (performance.now() < end) continue;
        const log = readFileSync(join(this.folder, 'log'), 'utf8');
        await this.stop();
        throw new Error(`PostgreSQL did not start within ${STARTS_WITHIN} ms\n${log}`, { cause: error });
      } finally {
        await client.end().catch(() => undefined);
        await sleep(50);
      }
    }
  }
}

/** PostgreSQL refuses to run as root, so another user owns the folder in that case. */
function unprivileged(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = idsOf('postgres') ?? idsOf('nobody') ?? [65_534, 65_534];
  chownSync(folder, uid, gid);
  return { uid, gid };
}

function idsOf(user: string): [number, number] | undefined {
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, user], { stdio: ['ignore', 'pipe', 'ignore'] }));
  try {
    return [id('-u'), id('-g')];
  } catch {
    return undefined;
  }
}
