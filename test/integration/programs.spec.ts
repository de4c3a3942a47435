import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '../support/eventually.js';

/** Runs JavaScript in a process of its own, in the folder of the scripts. */
const program = (code: string): string[] => ['--input-type=module', '--eval', code];
const SCRIPTS = new URL('../../scripts/', import.meta.url);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('A program that is not on this machine', () => {
  it.each([
    ['a Redis server', 'redis-servers.mjs', 'ensureRedisServer', 'No redis-server or valkey-server on this machine'],
    ['a browser', 'programs.mjs', 'ensureChromium', 'No Chromium on this machine'],
  ])('is named, with what to do: %s', async (_, file, name, message) => {
    const code = `import { ${name} } from './${file}'; await ${name}().catch((error) => console.log(error.message));`;
    const { REDIS_SERVER: _server, CHROMIUM: _browser, ...env } = process.env;
    const child = execFile(process.execPath, program(code), { cwd: SCRIPTS, env: { ...env, PATH: '/nowhere' } });
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
    expect(line).toContain(`${message}. Install it, then run this again: see https://`);
  });
});

describe('A server of the scripts', () => {
  it('ends with the process that started it, also paused, and when that process is killed', async () => {
    const code = `import { RedisServer } from './redis-servers.mjs';
      const servers = [await RedisServer.start(), await RedisServer.start()];
      servers[1].pause();
      console.log(servers.map(({ pid }) => pid).join(' '));
      setInterval(() => {}, 1_000);`;
    const child = spawn(process.execPath, program(code), { cwd: SCRIPTS, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const pids = line.split(' ').map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    child.kill('SIGKILL');
    await eventually(() => !pids.some(isAlive));
  });
});
