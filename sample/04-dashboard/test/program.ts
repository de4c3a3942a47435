import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach } from '@jest/globals';
import type { Snapshot } from '../src/live/snapshot.js';

export const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const SAMPLE = fileURLToPath(new URL('..', import.meta.url));
export const ENSURE_CHROMIUM = fileURLToPath(new URL('../../../scripts/ensure-chromium.mjs', import.meta.url));
/** How long a process may take to start or to end, in milliseconds. */
const WITHIN = 60_000;

export let program: ChildProcess | undefined;

afterEach(async () => {
  if (!program || program.exitCode !== null || program.signalCode !== null) return;
  const ended = once(program, 'exit');
  program.kill('SIGKILL');
  await ended;
});

/** Starts the program, and resolves with the address in its output. */
export async function serve(command = process.execPath, args = [PROGRAM]): Promise<string> {
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
export async function ask(method: string, url: string, headers: Record<string, string>): Promise<number | undefined> {
  const sent = request(url, { method, headers }).end();
  const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream & { statusCode?: number }];
  sent.destroy();
  return response.statusCode;
}

/** Resolves with the first snapshot that a page receives. */
export async function look(url: string): Promise<Snapshot> {
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
export async function runWithout(path: string): Promise<{ code: number; said: string }> {
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

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function untilGone(pids: readonly number[]): Promise<void> {
  const end = performance.now() + WITHIN;
  while (pids.some(isAlive)) {
    if (performance.now() > end) throw new Error(`still there: ${pids.filter(isAlive).join()}`);
    await sleep(50);
  }
}

export function processesIn({ masters, instances }: Snapshot): number[] {
  return [...masters, ...instances].map(({ pid }) => pid!);
}
