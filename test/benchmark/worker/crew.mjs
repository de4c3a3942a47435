import { WorkerProcess } from './worker-process.mjs';

/** One process per contender, so that what a process costs is what its contender costs. */
export class Crew {
  #workers = new Map();

  /** @param settings for the contenders; `ttl` is what all locks will be taken for */
  static async connect(contenders, urls, settings) {
    const crew = new Crew();
    const connecting = contenders.map((contender) => {
      const worker = new WorkerProcess();
      crew.#workers.set(contender, worker);
      return worker.run('connect', { contender, urls, settings });
    });
    try {
      await Promise.all(connecting);
    } catch (error) {
      await crew.end();
      throw error;
    }
    return crew;
  }

  get contenders() {
    return [...this.#workers.keys()];
  }

  run(contender, name, task) {
    return this.#workers.get(contender).run(name, { contender, ...task });
  }

  end() {
    for (const worker of this.#workers.values()) worker.end();
  }
}
