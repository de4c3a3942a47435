import { Redis } from 'ioredis';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { sleep } from './figures.mjs';

const PRIMARIES = 3;
const SLOTS = 16_384;
/** Far longer than any pause of a busy machine, in milliseconds: no failover during a measurement. */
const NODE_TIMEOUT = 60_000;
const PATIENCE = 60_000;

/** A Redis Cluster of three primaries, each with a replica. */
export class ClusterServers {
  #servers = [];

  static async start() {
    const cluster = new ClusterServers();
    try {
      await cluster.#form();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get url() {
    return `redis+cluster://${this.#servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  }

  get primaries() {
    return this.#servers.slice(0, PRIMARIES).map(({ url }) => url);
  }

  async stop() {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }

  async #form() {
    for (let i = 0; i < 2 * PRIMARIES; i++) {
      const args = (port) => [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT)],
        ...['--cluster-port', String(busPort(port)), '--repl-diskless-sync-delay', '0'],
      ];
      this.#servers.push(await RedisServer.start({ args }));
    }
    const clients = this.#servers.map(({ url }) => new Redis(url));
    const everywhere = (condition) => until(async () => (await Promise.all(clients.map(condition))).every(Boolean));
    try {
      const ids = await Promise.all(clients.map((client) => client.cluster('MYID')));
      const [first] = this.#servers;
      for (const [index, client] of clients.entries()) {
        await client.cluster('SET-CONFIG-EPOCH', index + 1);
        const [from, to] = [index, index + 1].map((part) => Math.round((part * SLOTS) / PRIMARIES));
        if (index < PRIMARIES) await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to - 1);
        if (index > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port, busPort(first.port));
      }
      await everywhere(async (client) => {
        const nodes = (await client.cluster('NODES')).trim().split('\n');
        return nodes.length === clients.length && !nodes.some((node) => /handshake|disconnected/.test(node));
      });
      for (const [index, client] of clients.slice(PRIMARIES).entries()) await client.cluster('REPLICATE', ids[index]);
      await everywhere(async (client) => {
        const isOk = (await client.cluster('INFO')).includes('cluster_state:ok');
        return isOk && !(await client.info('replication')).includes('master_link_status:down');
      });
    } finally {
      for (const client of clients) client.disconnect();
    }
  }
}

const busPort = (port) => (port < 22_000 ? port + 10_000 : port - 10_000);

async function until(condition) {
  const deadline = performance.now() + PATIENCE;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('The servers have not formed a cluster');
    await sleep(50);
  }
}
