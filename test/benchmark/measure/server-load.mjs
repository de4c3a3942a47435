import { Redis } from 'ioredis';

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
