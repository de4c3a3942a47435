import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { asClient } from '../measure/pinning.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

/**
 * Access to the garbage collector, to measure what is left in memory, and new objects in a space of a fixed size: by
 * default it grows in one process and stays small in another one of the same code, which then needs up to 45 % more CPU.
 */
const FLAGS = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16'];

/** A process that runs one task after the other. */
export class WorkerProcess {
  #process = start();
  #ended = once(this.#process, 'exit');
  #open = new Map();
  #ids = 0;

  constructor() {
    this.#process.on('message', ({ id, result, error }) => {
      const { resolve, reject } = this.#open.get(id);
      this.#open.delete(id);
      if (error) reject(new Error(`in a worker: ${error}`));
      else resolve(result);
    });
    this.#ended.then(([code]) => {
      for (const { reject } of this.#open.values()) reject(new Error(`A worker ended with ${code}`));
    });
  }

  /** Resolves when the process has ended. */
  async end() {
    // The process may be too busy to notice the disconnect.
    const late = setTimeout(() => this.#kill(), 2_000);
    if (this.#process.connected) this.#process.disconnect();
    await this.#ended;
    clearTimeout(late);
  }

  /** @param limit milliseconds after which an unfinished task is given up, together with the process */
  run(name, task = {}, limit = 180_000) {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#kill();
        reject(new Error(`${name} did not come back within ${limit} ms`));
      }, limit);
      const settled = (settle) => (value) => {
        clearTimeout(late);
        settle(value);
      };
      this.#open.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.#process.send({ id, name, task });
    });
  }

  #kill() {
    this.#process.kill('SIGKILL');
  }
}

function start() {
  const [execPath, ...execArgv] = asClient([process.execPath, ...FLAGS]);
  return fork(WORKER, { execPath, execArgv });
}
