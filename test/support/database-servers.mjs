// Private servers of PostgreSQL and MariaDB in temporary folders, which also hold their sockets.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** How long a server may take to start, in milliseconds. */
const STARTS_WITHIN = 20_000;

/**
 * Waits until its stdin closes, which happens however its parent process ends. Then it ends the server and deletes its
 * files.
 */
const GUARD = `
folder=$1; signal=$2; shift 2
"$@" >"$folder/log" 2>&1 &
read -r _
kill -"$signal" $!
wait
rm -rf "$folder"`;

class DatabaseServer {
  constructor({ name, folder, command, signal, user, url, connect }) {
    Object.assign(this, { name, folder, url, connect });
    // A process group of its own: Ctrl-C in a terminal must not end the guard before it has cleaned up.
    const stdio = ['pipe', 'ignore', 'ignore'];
    const args = ['-c', GUARD, `${name}-guard`, folder, signal, ...command];
    this.guard = spawn('/bin/sh', args, { cwd: folder, detached: true, stdio, ...user });
  }

  async stop() {
    const ended = once(this.guard, 'close');
    this.guard.stdin.end();
    await ended;
    // Another user than root may not delete an entry of the temporary folder. The process that created it may.
    rmSync(this.folder, { recursive: true, force: true });
  }

  async untilReady() {
    const end = performance.now() + STARTS_WITHIN;
    for (;;) {
      try {
        return await this.connect();
      } catch (error) {
        if (performance.now() < end) {
          await sleep(50);
          continue;
        }
        const log = readFileSync(join(this.folder, 'log'), 'utf8');
        await this.stop();
        throw new Error(`${this.name} did not start within ${STARTS_WITHIN} ms\n${log}`, { cause: error });
      }
    }
  }
}

/**
 * @param programs folder of the server's programs, as `findPostgres` gives it
 * @param prepare is called with the folder of the data, and the user of the server, before it starts
 */
export function startPostgres(programs, prepare = () => undefined) {
  return started('pg-', 'postgres', async (folder, user) => {
    const data = join(folder, 'data');
    const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-locale'];
    await promisify(execFile)(join(programs, 'initdb'), initdb, { cwd: folder, ...user });
    await prepare(data, user);
    const url = `postgres://postgres@/postgres?host=${encodeURIComponent(folder)}`;
    const server = join(programs, 'postgres');
    return {
      ...{ name: 'PostgreSQL', signal: 'INT', url },
      command: [server, '-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off'],
      connect: async () => {
        const { default: pg } = await import('pg');
        const client = new pg.Client({ connectionString: url });
        try {
          await client.connect();
        } finally {
          await client.end().catch(() => undefined);
        }
      },
    };
  });
}

/** @param programs paths of the server's programs, as `findMariadb` gives them */
export function startMariadb({ server, install }) {
  return started('my-', 'mysql', async (folder, user) => {
    const [data, socket] = [join(folder, 'data'), join(folder, 'socket')];
    const own = user.uid === undefined ? [] : ['--user=mysql'];
    const layout = ['--no-defaults', `--datadir=${data}`, ...own];
    await promisify(execFile)(install, [...layout, '--auth-root-authentication-method=normal'], { cwd: folder });
    const url = (database) => `mysql://root@localhost/${database}?socketPath=${encodeURIComponent(socket)}`;
    const light = ['--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=16M', '--innodb-log-file-size=8M'];
    const files = [`--socket=${socket}`, `--pid-file=${join(folder, 'pid')}`, '--skip-networking'];
    return {
      ...{ name: 'MariaDB', signal: 'TERM', url: url('test') },
      command: [server, ...layout, ...files, ...light],
      connect: async () => {
        const { createConnection } = await import('mysql2/promise');
        const connection = await createConnection({ uri: url('mysql') });
        try {
          await connection.query('CREATE DATABASE IF NOT EXISTS test');
        } finally {
          await connection.end();
        }
      },
    };
  });
}

async function started(prefix, account, describe) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  try {
    const user = unprivileged(folder, account);
    const server = new DatabaseServer({ folder, user, ...(await describe(folder, user)) });
    await server.untilReady();
    return server;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** The servers refuse to run as root, so another user owns the folder in that case. */
function unprivileged(folder, account) {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = idsOf(account) ?? idsOf('nobody') ?? [65_534, 65_534];
  chownSync(folder, uid, gid);
  return { uid, gid };
}

function idsOf(user) {
  const id = (flag) => Number(execFileSync('id', [flag, user], { stdio: ['ignore', 'pipe', 'ignore'] }));
  try {
    return [id('-u'), id('-g')];
  } catch {
    return undefined;
  }
}
