import { spawn } from 'node:child_process';

/** A process of an application, and its output so far. */
export class Instance {
  output = '';
  #child;
  #ended;

  constructor(command, args, cwd, env = {}) {
    this.#child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => (this.output += text));
    }
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', resolve);
      this.#child.once('close', resolve);
    });
  }

  get isRunning() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async end() {
    this.#child.kill();
    await this.#ended;
  }
}
