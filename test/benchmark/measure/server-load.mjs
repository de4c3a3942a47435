import { Redis } from 'ioredis';

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
    const texts = await Promise.all(this.#clients.map((client) => client.info('cpu')));
    return texts.map(usedBy).reduce((sum, used) => sum + used, 0);
  }

  close() {
    for (const client of this.#clients) client.disconnect();
  }
}

function usedBy(text) {
  const seconds = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)[1]);
  return (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e6;
}
