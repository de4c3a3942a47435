import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isBuilt } from '../../scripts/ensure-build.mjs';

/** The result of a command-line run. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** Sent to standard input, which then closes. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A running command-line process. */
export interface Running {
  /** Resolves when the program asks for input. */
  readonly asked: Promise<void>;
  readonly ended: Promise<Ended>;
  /** Types this input and then closes standard input. */
  type(input: string): void;
}

const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Readonly<Record<string, string>> };

/** Runs the published program in its own process, without a terminal. */
export async function cli(args: readonly string[], { input = '', env = {} }: CliOptions = {}): Promise<Ended> {
  const running = await startCli(args, env);
  running.type(input);
  return running.ended;
}

/** Like {@link cli}, for tests that wait for the question before they answer it. */
export async function startCli(args: readonly string[], env: CliOptions['env'] = {}): Promise<Running> {
  if (!(await isBuilt())) throw new Error('dist is missing, or older than lib: npm run build');
  const { REDLOCK_MASTERS: _, ...inherited } = process.env;
  const program = join(process.cwd(), bin['nestjs-redlock'] ?? '');
  const child = spawn(process.execPath, [program, ...args], { env: { ...inherited, ...env } });
  const asked = new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk) => String(chunk).includes('Type yes') && resolve());
  });
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [status]]) => ({ status: status as number | null, stdout, stderr }),
  );
  return { asked, ended, type: (input) => void child.stdin.end(input) };
}

/** Command-line options for these masters. */
export function on(urls: readonly string[]): string[] {
  return urls.flatMap((url) => ['--master', url]);
}
