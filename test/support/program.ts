import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** One instance of a program, in a process of its own. */
export class Program {
  private readonly output: string[] = [];
  private readonly listeners = new Set<() => void>();
  /** Resolves with exit status and signal. */
  readonly ended: Promise<[code: number | null, signal: NodeJS.Signals | null]>;

  private constructor(private readonly child: ChildProcess) {
    this.ended = once(child, 'close') as typeof this.ended;
  }

  static start(path: string, env: NodeJS.ProcessEnv): Program {
    const child = spawn(process.execPath, [path], {
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const program = new Program(child);
    for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', (line) => program.hear(line));
    return program;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** What it has written so far. */
  get log(): string {
    return this.output.join('\n');
  }

  /** Resolves when the string appears in later output; rejects with the output if the instance ends before. */
  async says(text: string): Promise<void> {
    const from = this.output.length;
    const said = new Promise<void>((resolve) => {
      const listener = (): void => {
        if (!this.output.slice(from).some((line) => line.includes(text))) return;
        this.listeners.delete(listener);
        resolve();
      };
      this.listeners.add(listener);
    });
    const ended = this.ended.then(() => {
      throw new Error(`It ended and did not say "${text}"\n${this.log}`);
    });
    await Promise.race([said, ended]);
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.child.kill(signal);
  }

  private hear(line: string): void {
    this.output.push(line);
    for (const listener of this.listeners) listener();
  }
}
