import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { sleep } from './figures.mjs';

/** Commands of the benchmark itself, and of clients that connect or idle. */
const NOT_OF_LOCKS = new Set(['client', 'hello', 'info', 'monitor', 'ping']);

/** The load of the servers, as they report it. */
export class ServerLoad {
  #clients;

  static async watch(urls) {
    const load = new ServerLoad();
    load.#clients = urls.map((url) => new Redis(url));
    await load.cpu();
    return load;
  }

  /** Microseconds of CPU of all servers together since they started. */
  async cpu() {
    return sum((await this.#info('cpu')).map(usedBy));
  }

  /**
   * All that the servers have done since they started: microseconds of CPU of each, and of all together the bytes that
   * they received and sent, and the commands that they ran, also those in scripts.
   */
  async read() {
    const texts = await this.#info('everything');
    const all = (number) => sum(texts.map(number));
    return {
      cpus: texts.map(usedBy),
      received: all((text) => numberIn(text, 'total_net_input_bytes')),
      sent: all((text) => numberIn(text, 'total_net_output_bytes')),
      commands: all(commandsIn),
    };
  }

  close() {
    for (const client of this.#clients) client.disconnect();
  }

  #info(section) {
    return Promise.all(this.#clients.map((client) => client.info(section)));
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const usedBy = (text) => (numberIn(text, 'used_cpu_sys') + numberIn(text, 'used_cpu_user')) * 1e6;
const numberIn = (text, name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)[1]);

function commandsIn(text) {
  const calls = [...text.matchAll(/^cmdstat_([^:|]+)[^:]*:calls=(\d+)/gm)];
  return sum(calls.filter(([, name]) => !NOT_OF_LOCKS.has(name)).map(([, , count]) => Number(count)));
}

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
