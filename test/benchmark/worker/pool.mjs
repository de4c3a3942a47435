import { WorkerProcess } from './worker-process.mjs';

/** Processes that contend with each other. */
export class Pool {
  #workers;

  constructor(size) {
    this.#workers = Array.from({ length: size }, () => new WorkerProcess());
  }

  /** Gives the same task to the first `count` processes. Resolves with the result of each. */
  run(name, task = {}, count = this.#workers.length) {
    return Promise.all(this.#workers.slice(0, count).map((worker) => worker.run(name, task)));
  }

  end() {
    return Promise.all(this.#workers.map((worker) => worker.end()));
  }
}
