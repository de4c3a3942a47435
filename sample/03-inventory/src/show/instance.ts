import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { FREEZING } from '../freeze.js';

const PROGRAM = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The answer of an instance. */
export interface Response {
  readonly status: number;
  readonly body: { readonly count?: number; readonly message?: string };
}

/** One instance of the application, in a process of its own. */
export class Instance {
  private url = '';

  private constructor(
    private readonly child: ChildProcess,
    /** Resolves when the instance has frozen. */
    readonly frozen: Promise<unknown>,
  ) {}

  /** Resolves when the instance listens. */
  static async start(env: NodeJS.ProcessEnv): Promise<Instance> {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { ...process.env, PORT: '0', NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = new EventEmitter();
    const output: string[] = [];
    const instance = new Instance(child, once(said, 'freezing'));
    createInterface(child.stdout).on('line', (line) => {
      output.push(line);
      const [, url] = /^listening on (.*)$/.exec(line) ?? [];
      if (url) said.emit('listening', url);
      if (line === FREEZING) said.emit('freezing');
      if (line.includes(' WARN ')) process.stdout.write(`  ${line.trim()}\n`);
    });
    child.stderr.on('data', (chunk) => output.push(String(chunk)));
    const ended = once(child, 'close').then(() => {
      throw new Error(`The instance ended before it listened\n${output.join('\n')}`);
    });
    const [url] = (await Promise.race([once(said, 'listening'), ended])) as [string];
    ended.catch(() => undefined);
    instance.url = url;
    return instance;
  }

  async request(method: 'GET' | 'PUT' | 'POST', path: string, body?: object): Promise<Response> {
    const init = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await fetch(this.url + path, { method, ...init });
    return { status: response.status, body: (await response.json()) as Response['body'] };
  }

  /** Ends its freeze. */
  wake(): void {
    this.child.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}
