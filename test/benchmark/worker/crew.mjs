import { WorkerProcess } from './worker-process.mjs';

/** One process per contender, so that the cost of a process is the cost of its contender. */
export class Crew {
  #workers = new Map();

  /**
   * @param members names of contenders; one that takes part several times has a suffix after an `@`
   * @param settings for the contenders; `ttl` is the ttl of all locks
   */
  static async connect(members, urls, settings) {
    const crew = new Crew();
    const connecting = members.map((member) => {
      crew.#workers.set(member, new WorkerProcess());
      return crew.run(member, 'connect', { urls, settings });
    });
    try {
      await Promise.all(connecting);
    } catch (error) {
      await crew.end();
      throw error;
    }
    return crew;
  }

  get members() {
    return [...this.#workers.keys()];
  }

  run(member, name, task) {
    const [contender] = member.split('@');
    return this.#workers.get(member).run(name, { contender, ...task });
  }

  end() {
    return Promise.all([...this.#workers.values()].map((worker) => worker.end()));
  }
}
