import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isBuilt } from '../../scripts/ensure-build.mjs';

/** How a command line ended. */
export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** What is typed in. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const { bin } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Readonly<Record<string, string>> };

/** Runs the program that users get, in a process of its own and without a terminal. */
export async function cli(args: readonly string[], { input = '', env = {} }: CliOptions = {}): Promise<Ended> {
  if (!(await isBuilt())) throw new Error('dist is missing, or older than lib: npm run build');
  const { REDLOCK_MASTERS: _, ...inherited } = process.env;
  const program = join(process.cwd(), bin['nestjs-redlock'] ?? '');
  const child = spawn(process.execPath, [program, ...args], { env: { ...inherited, ...env } });
  child.stdin.end(input);
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { status, stdout, stderr };
}

/** Options that name these masters. */
export function on(urls: readonly string[]): string[] {
  return urls.flatMap((url) => ['--master', url]);
}
