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

/** One process per contender, so that the cost of a process is the cost of its contender. */
export class Crew {
  #workers = new Map();

  /**
   * @param members names of contenders; one that takes part several times has a suffix after an `@`
   * @param urls of all masters, or a function of the member
   * @param settings for the contenders; `ttl` is the ttl of all locks
   */
  static async connect(members, urls, settings) {
    const crew = new Crew();
    const connecting = members.map((member) => {
      crew.#workers.set(member, new WorkerProcess());
      return crew.run(member, 'connect', { urls: typeof urls === 'function' ? urls(member) : urls, settings });
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
