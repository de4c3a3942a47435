import { RedisServer } from '../redis-servers.mjs';
import { root } from '../run.mjs';

/** Real Redis processes on free ports of this machine. */
export class RedisMasters {
  #servers = [];

  static async start(count, cleanUp) {
    const masters = new RedisMasters();
    cleanUp(() => masters.#stop());
    const starting = Array.from({ length: count }, async () => masters.#servers.push(await RedisServer.start()));
    // Waits for all of them, so that no server starts after the clean-up.
    const failed = (await Promise.allSettled(starting)).find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
    return masters;
  }

  /** The masters, as the instances take them. */
  get sources() {
    return this.#servers.map(({ url }) => url);
  }

  get names() {
    return this.#servers.map(({ port }) => `redis-server on port ${port}`);
  }

  kill(index) {
    return this.#servers[index].kill();
  }

  pause(index) {
    this.#servers[index].pause();
  }

  async #stop() {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}

/** Masters in the memory of this process, for machines without Redis. They fail like servers. */
export class MemoryMasters {
  static async start(count) {
    const { memoryMasters } = await import(new URL('dist/esm/testing/index.js', `file://${root}`).href);
    return new MemoryMasters(memoryMasters(count));
  }

  constructor(sources) {
    this.sources = sources;
  }

  get names() {
    return this.sources.map(({ name }) => name);
  }

  kill(index) {
    this.sources[index].takeDown();
  }

  pause(index) {
    this.sources[index].pause();
  }
}
