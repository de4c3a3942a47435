import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROCESS = fileURLToPath(new URL('proxy-process.mjs', import.meta.url));

/** A slower network in front of some servers. It is a process of its own, so that its CPU is not that of a client. */
export class DelayingProxy {
  /** Where the servers are reached through the proxy, in the order of {@link start}. */
  urls;
  #process;

  static async start(urls) {
    const proxy = new DelayingProxy();
    proxy.#process = fork(
      PROCESS,
      urls.map((url) => new URL(url).port),
    );
    const [ports] = await once(proxy.#process, 'message');
    proxy.urls = ports.map((port) => `redis://127.0.0.1:${port}`);
    return proxy;
  }

  /** @param roundTrip milliseconds that are added to each round trip, half of them in each direction */
  async delayBy(roundTrip) {
    this.#process.send(roundTrip);
    await once(this.#process, 'message');
  }

  async end() {
    const ended = once(this.#process, 'exit');
    this.#process.disconnect();
    await ended;
  }
}
