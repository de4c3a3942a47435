import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { sleep } from './numbers.mjs';

/** Commands that the benchmark itself sends, and that clients send when they connect. */
const OWN = new Set(['client', 'del', 'hello', 'info', 'ping']);
const COMMAND = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<name>[^"]+)"/;

/**
 * Counts the commands of clients as the servers see them, through MONITOR, without the commands that scripts run inside
 * the server.
 *
 * MONITOR slows the servers down, so rounds with a counter are not timed. It uses a plain socket, because under traffic
 * ioredis can mistake the first lines for replies.
 */
export class CommandCounter {
  #sockets = [];
  #count = 0;

  /** @param about counts only commands with a key that ends with this string */
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
      // The key is an argument of its own, or part of a JSON string.
      if (line.includes(`${about}"`) || line.includes(`${about}\\"`)) this.#count += 1;
    });
    return socket;
  }

  /** Stops counting and returns the number of commands. */
  async stop() {
    await sleep(100);
    for (const socket of this.#sockets) socket.destroy();
    return this.#count;
  }
}
