import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** One instance of the worker, in a process of its own. */
export class Instance {
  private readonly output: string[] = [];
  private readonly listeners = new Set<() => void>();
  /** Resolves with exit status and signal. */
  readonly ended: Promise<[code: number | null, signal: NodeJS.Signals | null]>;

  private constructor(private readonly child: ChildProcess) {
    this.ended = once(child, 'close') as typeof this.ended;
  }

  static start(env: NodeJS.ProcessEnv): Instance {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const instance = new Instance(child);
    for (const stream of [child.stdout, child.stderr])
      createInterface(stream).on('line', (line) => instance.hear(line));
    return instance;
  }

  get pid(): number {
    return this.child.pid!;
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
      throw new Error(`It ended and did not say "${text}"\n${this.output.join('\n')}`);
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
