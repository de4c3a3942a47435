import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { sleep } from './numbers.mjs';

/** What the benchmark itself sends, and clients when they connect. */
const OWN = new Set(['client', 'del', 'hello', 'info', 'ping']);
const COMMAND = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<name>[^"]+)"/;

/**
 * Counts what clients send, as the servers see it: MONITOR, without what scripts do inside the server.
 *
 * It slows the servers down, so rounds with a counter are not timed. Over a plain socket, because ioredis can mistake
 * the first lines for replies when there is traffic already.
 */
export class CommandCounter {
  #sockets = [];
  #count = 0;

  /** @param about counts only commands whose key ends so */
  static async start(urls, about = '') {
    const counter = new CommandCounter();
    counter.#sockets = await Promise.all(urls.map((url) => counter.#watch(new URL(url), about)));
    return counter;
  }

  async #watch({ hostname, port }, about) {
    const socket = connect(Number(port), hostname);
    const lines = createInterface(socket);
    socket.write('MONITOR\r\n');
    await once(lines, 'line');
    lines.on('line', (line) => {
      const { source, name } = COMMAND.exec(line)?.groups ?? {};
      if (!name || source === 'lua' || OWN.has(name.toLowerCase())) return;
      // As a name of its own, or within a JSON text.
      if (line.includes(`${about}"`) || line.includes(`${about}\\"`)) this.#count += 1;
    });
    return socket;
  }

  /** Commands up to now. */
  async stop() {
    await sleep(100);
    for (const socket of this.#sockets) socket.destroy();
    return this.#count;
  }
}
