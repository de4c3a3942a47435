import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { transform } from '@swc/core';

const ROOT = process.cwd();

/** The library as JavaScript, for child processes: Node 20 does not run TypeScript. */
export interface Compiled extends AsyncDisposable {
  readonly folder: string;
}

/** Compiles the current lib/ and the code that tests run in child processes, whatever dist/ contains. */
export async function compileLibrary(): Promise<Compiled> {
  // Inside the repository, so that Node finds the packages.
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'compiled-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  for (const part of ['lib', 'test/support', 'test/processes', 'test/torture', 'test/soak']) {
    const files = await readdir(join(ROOT, part), { recursive: true });
    const sources = files.filter((file) => file.endsWith('.ts')).map((file) => join(part, file));
    await Promise.all(sources.map((file) => compile(file, folder)));
  }
  await cp(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
  const filter = (path: string): boolean => !path.endsWith('.ts');
  for (const part of ['test/support', 'test/torture']) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true, filter });
  }
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

async function compile(file: string, folder: string): Promise<void> {
  const source = await readFile(join(ROOT, file), 'utf8');
  const { code } = await transform(source, {
    filename: file,
    configFile: false,
    swcrc: false,
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: true },
    },
    module: { type: 'es6' },
  });
  const target = join(folder, file.replace(/\.ts$/, '.js'));
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
}

/** A program of test/processes that runs in its own process. */
export interface Program {
  /** Resolves with the next line of output; rejects if the program ends first. */
  line(): Promise<string>;
  /** Resolves with the exit code, or with the signal that ended the process. */
  readonly ended: Promise<number | string>;
  /** Sends SIGSTOP: the process does nothing, and its connections stay open. */
  pause(): void;
  resume(): void;
  kill(): void;
  /** Kills it, and waits for its end. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts test/processes/`name`.ts with one argument. */
export function start({ folder }: Compiled, name: string, argument: object, env: NodeJS.ProcessEnv = {}): Program {
  const program = join(folder, 'test/processes', `${name}.js`);
  const child = spawn(process.execPath, ['--expose-gc', program, JSON.stringify(argument)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const kill = (): void => void child.kill('SIGKILL');
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  return {
    line: async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${name} ended without a further line`);
      return value;
    },
    ended,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill,
    [Symbol.asyncDispose]: async () => {
      kill();
      await ended;
    },
  };
}
