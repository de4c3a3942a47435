import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

/** Processes that contend with each other. */
export class Pool {
  #workers;

  constructor(size) {
    this.#workers = Array.from({ length: size }, () => new Worker());
  }

  /** Gives the same task to the first `count` processes; resolves with what each of them found. */
  run(name, task = {}, count = this.#workers.length) {
    return Promise.all(this.#workers.slice(0, count).map((worker) => worker.run(name, task)));
  }

  end() {
    for (const worker of this.#workers) worker.end();
  }
}

class Worker {
  #process = fork(WORKER);
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
    this.#process.disconnect();
  }

  run(name, task) {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#process.send({ id, name, task });
    });
  }
}
