// Real Redis (or Valkey) processes for tests, the demo and benchmarks. They listen on loopback only, write nothing to
// disk by default, and are never the machine's own Redis service.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ensureProgram, onPath } from './programs.mjs';

// Debian ships the server's binary in redis-tools and valkey-tools under the name of the checker; it acts according to
// the name by which it is started. Unlike redis-server, that package installs no system service.
const SERVER_NAMES = ['redis-server', 'valkey-server', 'redis-check-rdb', 'valkey-check-rdb'];

const PACKAGES = {
  'apt-get': ['redis-tools'],
  apk: ['redis'],
  dnf: ['redis'],
  brew: ['redis'],
};

/** Path of the server to start: `REDIS_SERVER` if set, else a server in PATH; `undefined` if there is none. */
export function findRedisServer() {
  return process.env.REDIS_SERVER || SERVER_NAMES.map(onPath).find(Boolean);
}

/**
 * Like {@link findRedisServer}, but installs a server if that needs no password. Otherwise rejects with the command to
 * run.
 */
export function ensureRedisServer() {
  return ensureProgram('redis-server or valkey-server', findRedisServer, PACKAGES, 'https://redis.io/downloads');
}

/** Name and version of a server's program, e.g. `Redis 7.0.15` or `Valkey 9.1.2`. */
export async function versionOfServer(binary) {
  // Not execFile, which cannot pass another name.
  const process = spawn(binary, ['--version'], { argv0: nameOf(binary), stdio: ['ignore', 'pipe', 'inherit'] });
  const stdout = await text(process.stdout);
  const [, name, version] = /^(\w+) server v=([\d.]+)/.exec(stdout) ?? [];
  if (!version) throw new Error(`${binary} --version names no version of Redis or Valkey: ${stdout.trim()}`);
  return `${name} ${version}`;
}

/** One server process on 127.0.0.1. It ends with the process that started it, however that process ends. */
export class RedisServer {
  port;
  #args;
  #env;
  #dir;
  #ownsDir;
  #child;
  #exited = Promise.resolve();
  #dismissGuard = () => {};

  /**
   * Starts a server and resolves when it accepts connections. `args`, or what they return for the port, come last, so
   * they override the defaults.
   */
  static async start({ port, args = [], env = {}, dir } = {}) {
    // Redis itself finds out whether a port is free: after a check another process could still take the port.
    let attemptsLeft = port === undefined ? 20 : 1;
    for (;;) {
      const server = new RedisServer(port ?? randomPort(), args, env, dir);
      try {
        await server.#launch();
        return server;
      } catch (error) {
        await server.stop();
        attemptsLeft -= 1;
        if (!(error instanceof PortTakenError) || attemptsLeft === 0) throw error;
      }
    }
  }

  constructor(port, args, env, dir) {
    this.port = port;
    this.#args = args;
    this.#env = env;
    this.#ownsDir = dir === undefined;
    this.#dir = dir ?? mkdtempSync(join(tmpdir(), 'redlock-redis-'));
  }

  get #ownArgs() {
    return typeof this.#args === 'function' ? this.#args(this.port) : this.#args;
  }

  /** Its working directory, which {@link stop} removes unless it was given. */
  get dir() {
    return this.#dir;
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Process id; undefined while the server is down. */
  get pid() {
    return this.#child?.pid;
  }

  /** Freezes the server: connections stay open, and the server does not answer. */
  pause() {
    this.#signal('SIGSTOP');
  }

  /** Ends {@link pause}: the server executes the commands that it received meanwhile. */
  resume() {
    this.#signal('SIGCONT');
  }

  /** Crashes the server, paused or not; resolves when it is gone. */
  async kill() {
    this.#child?.ref();
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }

  /** Crashes the server if it is up, and starts it again on the same port. */
  async restart() {
    await this.kill();
    await this.#launch();
  }

  /** Ends the server for good and removes its temporary directory. */
  async stop() {
    await this.kill();
    if (this.#ownsDir) rmSync(this.#dir, { recursive: true, force: true });
  }

  [Symbol.asyncDispose]() {
    return this.stop();
  }

  #signal(name) {
    if (!this.#child) throw new Error(`The server on port ${this.port} is down, ${name} cannot reach it`);
    this.#child.kill(name);
  }

  async #launch() {
    const binary = findRedisServer();
    if (!binary) throw new Error(`No redis-server or valkey-server on PATH; npm test installs one where it can`);

    const child = spawn(
      binary,
      [
        ...['--bind', '127.0.0.1', '--port', String(this.port), '--dir', this.#dir],
        ...['--save', '', '--appendonly', 'no', '--loglevel', 'notice', ...this.#ownArgs],
      ],
      {
        argv0: nameOf(binary),
        env: { ...process.env, ...this.#env },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    this.#exited = new Promise((resolve) => {
      child.once('error', resolve);
      child.once('exit', resolve);
    }).then(() => {
      this.#child = undefined;
      this.#dismissGuard();
    });
    if (child.pid !== undefined) {
      this.#child = child;
      this.#dismissGuard = guard(child.pid, this.#ownsDir ? this.#dir : '');
    }

    try {
      await accepting(child);
    } catch (error) {
      await this.kill();
      throw error;
    }
    // A server that is not stopped must not keep this process alive: the guard ends the server when the process ends.
    for (const handle of [child, child.stdout, child.stderr]) handle.unref();
  }
}

// The program acts according to the name by which it is started, and some packages ship it under another name.
function nameOf(binary) {
  return basename(binary).includes('valkey') ? 'valkey-server' : 'redis-server';
}

class PortTakenError extends Error {}

// Below the range from which systems number outgoing connections (32768 on Linux, 49152 elsewhere): a client that
// reconnects to a dead server from that range can connect to itself and hold the port against the restart.
function randomPort() {
  return 12_000 + Math.floor(Math.random() * 20_000);
}

/**
 * Resolves when the server reports that it is ready; rejects with its output if it ends, or does not report within 15
 * s.
 */
function accepting(child) {
  return new Promise((resolve, reject) => {
    const output = [];
    const fail = (why) => {
      clearTimeout(deadline);
      const text = output.join('\n');
      const Reason = /Address already in use/i.test(text) ? PortTakenError : Error;
      reject(new Reason(`${child.spawnfile} ${why}\n${text}`));
    };
    const deadline = setTimeout(() => fail('was not ready within 15 s'), 15_000);

    child.once('error', (error) => fail(`could not be started: ${error.message}`));
    // 'close' and not 'exit', because the last lines of output explain the exit.
    child.once('close', (code) => fail(`ended with ${code} before it was ready`));
    child.stderr.on('data', (chunk) => output.push(String(chunk)));
    createInterface(child.stdout).on('line', (line) => {
      if (output.length < 100) output.push(line);
      if (!/Ready to accept connections/i.test(line)) return;
      clearTimeout(deadline);
      resolve();
    });
  });
}

/**
 * A shell that waits for the end of this process, which closes its stdin, and then ends the server. It works where an
 * 'exit' listener does not: when this process is killed, and inside jest, whose `process` object is a copy without
 * events.
 */
function guard(pid, dir) {
  const script = 'read -r done || { kill -9 "$1" 2>/dev/null; [ -z "$2" ] || rm -rf "$2"; }';
  const shell = spawn('/bin/sh', ['-c', script, 'redis-guard', String(pid), dir], {
    // Its own process group: Ctrl-C in the terminal must not end the guard before its work is done.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  shell.stdin.unref();
  return () => shell.stdin.end('done\n');
}
