import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../src/live/snapshot.js';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const SAMPLE = fileURLToPath(new URL('..', import.meta.url));
const ENSURE_CHROMIUM = fileURLToPath(new URL('../../../scripts/ensure-chromium.mjs', import.meta.url));
/** How long a process may take to start or to end, in milliseconds. */
const WITHIN = 60_000;

let program: ChildProcess | undefined;

afterEach(async () => {
  if (!program || program.exitCode !== null || program.signalCode !== null) return;
  const ended = once(program, 'exit');
  program.kill('SIGKILL');
  await ended;
});

/** Starts the program, and resolves with the address in its output. */
async function serve(command = process.execPath, args = [PROGRAM]): Promise<string> {
  program = spawn(command, args, {
    cwd: SAMPLE,
    env: { ...process.env, PORT: '0', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(program.stdout!)) {
    const [, url] = /^The dashboard is at (\S+)$/.exec(line) ?? [];
    if (!url) continue;
    program.stdout!.resume();
    return url;
  }
  throw new Error('it ended before it named its address');
}

/** Resolves with the status of the answer. Unlike `fetch`, this function can send any header. */
async function ask(method: string, url: string, headers: Record<string, string>): Promise<number | undefined> {
  const sent = request(url, { method, headers }).end();
  const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream & { statusCode?: number }];
  sent.destroy();
  return response.statusCode;
}

/** Resolves with the first snapshot that a page receives. */
async function look(url: string): Promise<Snapshot> {
  const response = await fetch(`${url}/events`);
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const [, data] = /^event: snapshot\n(?:id: .*\n)?data: (.*)\n/m.exec(text) ?? [];
    if (data) return JSON.parse(data) as Snapshot;
  }
  throw new Error('the stream ended without a snapshot');
}

/** Runs a program to its end in an environment where nothing is installed. */
async function runWithout(path: string): Promise<{ code: number; said: string }> {
  const { REDIS_SERVER: _, CHROMIUM: __, ...env } = process.env;
  const child = spawn(process.execPath, [path], {
    env: { ...env, PATH: '/nowhere' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  const [code] = (await once(child, 'close')) as [number];
  return { code, said };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilGone(pids: readonly number[]): Promise<void> {
  const end = performance.now() + WITHIN;
  while (pids.some(isAlive)) {
    if (performance.now() > end) throw new Error(`still there: ${pids.filter(isAlive).join()}`);
    await sleep(50);
  }
}

function processesIn({ masters, instances }: Snapshot): number[] {
  return [...masters, ...instances].map(({ pid }) => pid!);
}

describe('The controls', () => {
  it('refuse requests from other pages, whatever host name they use', async () => {
    const url = await serve();
    const { host, port } = new URL(url);
    const kill = `${url}/masters/1/kill`;
    const pid = (await look(url)).masters[0]!.pid!;
    for (const headers of [
      { host },
      { host, origin: 'null' },
      { host, origin: 'https://elsewhere.example' },
      { host, origin: `http://127.0.0.1:${Number(port) + 1}` },
      { host: `elsewhere.example:${port}`, origin: `http://elsewhere.example:${port}` },
    ]) {
      expect(await ask('POST', kill, headers)).toBe(403);
    }
    expect(await ask('GET', `${url}/events`, { host: `elsewhere.example:${port}` })).toBe(403);
    expect(isAlive(pid)).toBe(true);

    expect(await ask('POST', kill, { host, origin: url })).toBe(204);
    expect(isAlive(pid)).toBe(false);
    expect(await ask('POST', kill, { host, origin: url })).toBe(409);
    expect(await ask('POST', `${url}/masters/4/kill`, { host, origin: url })).toBe(404);
    expect(await ask('POST', `${url}/masters/1/flush`, { host, origin: url })).toBe(404);
  }, 120_000);
});

describe('The program', () => {
  it('leaves nothing behind when it receives a signal to end while a page is open', async () => {
    const url = await serve();
    const pids = processesIn(await look(url));
    const stream = await fetch(`${url}/events`);
    const ended = once(program!, 'exit');
    program!.kill('SIGTERM');
    // Waits for the end of the stream: the server does not wait for the page to close.
    await Promise.all([stream.text(), ended]);
    expect(pids).toHaveLength(6);
    expect(pids.filter(isAlive)).toEqual([]);
  }, 120_000);

  it('leaves nothing behind when `npm start` receives a signal to end', async () => {
    const pids = processesIn(await look(await serve('npm', ['start'])));
    program!.kill('SIGTERM');
    await untilGone(pids);
    expect(pids).toHaveLength(6);
  }, 120_000);

  it('leaves nothing behind when it is killed, not even paused processes', async () => {
    const url = await serve();
    const headers = { host: new URL(url).host, origin: url };
    expect(await ask('POST', `${url}/masters/1/pause`, headers)).toBe(204);
    expect(await ask('POST', `${url}/instances/A/pause`, headers)).toBe(204);
    const pids = processesIn(await look(url));
    program!.kill('SIGKILL');
    await untilGone(pids);
    expect(pids).toHaveLength(6);
  }, 120_000);

  it('names what is missing if there is no Redis server', async () => {
    const { code, said } = await runWithout(PROGRAM);
    expect(said).toMatch(/No redis-server or valkey-server on this machine. Install it/);
    expect(code).toBe(1);
  }, 120_000);
});

describe('The tests', () => {
  it('name what is missing if there is no browser', async () => {
    const { code, said } = await runWithout(ENSURE_CHROMIUM);
    expect(said).toMatch(/No Chromium on this machine. Install it/);
    expect(code).toBe(1);
  }, 120_000);
});
