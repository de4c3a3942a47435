import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { MASTERS_VARIABLE } from '../../lib/cli/session.js';
import { run } from '../../lib/cli/program.js';
import { processTerminal } from '../../lib/cli/terminal.js';
import { isBuilt } from '../../scripts/ensure-build.mjs';

/** The result of a command-line run. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command line that may ask a question. */
export interface Running {
  /** Resolves when the program asks for input. */
  readonly asked: Promise<void>;
  readonly ended: Promise<Ended>;
  /** Types this input and then closes standard input. */
  type(input: string): void;
}

const { bin, version } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  bin: Readonly<Record<string, string>>;
  version: string;
};

/** Runs a command line without a terminal, in this process. The input is sent to standard input, which then closes. */
export async function cli(args: readonly string[], input = ''): Promise<Ended> {
  const running = startCli(args);
  running.type(input);
  return running.ended;
}

/** Like {@link cli}, for tests that wait for the question before they answer it. */
export function startCli(args: readonly string[]): Running {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const terminal = processTerminal({ stdin, stdout, stderr } as unknown as typeof process);
  const status = run(args, version, terminal).finally(() => [stdin, stdout, stderr].forEach((stream) => stream.end()));
  return running({ stdin, stdout, stderr }, status);
}

/** Runs the published program in its own process: only this shows that the program ends. */
export async function cliProcess(
  args: readonly string[],
  { input = '', env = {} }: { input?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  if (!(await isBuilt())) throw new Error('dist is missing, or older than lib: npm run build');
  const { [MASTERS_VARIABLE]: _, ...inherited } = process.env;
  const program = join(process.cwd(), bin['nestjs-redlock'] ?? '');
  const child = spawn(process.execPath, [program, ...args], { env: { ...inherited, ...env } });
  const spawned = running(
    child,
    once(child, 'close').then(([status]) => status as number | null),
  );
  spawned.type(input);
  return spawned.ended;
}

function running(
  {
    stdin,
    stdout,
    stderr,
  }: { stdin: NodeJS.WritableStream; stdout: NodeJS.ReadableStream; stderr: NodeJS.ReadableStream },
  ending: Promise<number | null>,
): Running {
  const asked = new Promise<void>((resolve) => {
    stderr.on('data', (chunk) => String(chunk).includes('Type yes') && resolve());
  });
  const ended = Promise.all([text(stdout), text(stderr), ending]).then(([out, err, status]) => {
    return { status, stdout: out, stderr: err };
  });
  return { asked, ended, type: (input) => void stdin.end(input) };
}

/** Command-line options for these masters. */
export function on(urls: readonly string[]): string[] {
  return urls.flatMap((url) => ['--master', url]);
}
