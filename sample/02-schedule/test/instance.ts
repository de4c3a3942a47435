import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** One instance of the application, in a process of its own. */
export class Instance {
  /** Resolves when the process is gone. */
  readonly ended: Promise<unknown>;
  private readonly output: string[] = [];

  private constructor(
    readonly name: string,
    private readonly child: ChildProcess,
  ) {
    this.ended = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream!).on('line', (line) => this.output.push(line));
    }
  }

  static start(name: string, env: NodeJS.ProcessEnv): Instance {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { ...process.env, NO_COLOR: '1', PORT: '0', INSTANCE: name, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new Instance(name, child);
  }

  /** What it has written so far. */
  get log(): string {
    return this.output.join('\n');
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.child.kill(signal);
  }
}
