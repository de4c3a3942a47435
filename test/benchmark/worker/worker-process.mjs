import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

/** A process that does one task after the other. */
export class WorkerProcess {
  // With the collector at hand, to see what is left in memory.
  #process = fork(WORKER, { execArgv: ['--expose-gc'] });
  #open = new Map();
  #ids = 0;

  constructor() {
    this.#process.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#open.get(id);
      this.#open.delete(id);
      if (error) reject(new Error(`in a worker: ${error}`));
      else resolve(result);
    });
    this.#process.on('exit', (code) => {
      for (const { reject } of this.#open.values()) reject(new Error(`A worker ended with ${code}`));
    });
  }

  end() {
    if (this.#process.connected) this.#process.disconnect();
  }

  /** For a process that does not react any more. */
  kill() {
    this.#process.kill('SIGKILL');
  }

  run(name, task = {}) {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#process.send({ id, name, task });
    });
  }
}
