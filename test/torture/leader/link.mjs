import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** The way of one instance to one master, which can be cut: everything is lost, and no connection is closed. */
export class Link {
  #server;
  #sockets = new Set();
  #isCut = false;

  static async to(port) {
    const link = new Link();
    link.#server = createServer({ noDelay: true }, (client) => {
      const server = connect({ port, host: '127.0.0.1', noDelay: true });
      link.#carry(client, server);
      link.#carry(server, client);
    });
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get url() {
    return `redis://127.0.0.1:${this.#server.address().port}`;
  }

  cut() {
    this.#isCut = true;
  }

  /** What was lost is missing in the middle of the streams, so only new connections help. */
  heal() {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.heal();
    this.#server.close();
  }

  #carry(from, to) {
    this.#sockets.add(from);
    from.on('data', (chunk) => void (this.#isCut || to.write(chunk)));
    from.on('error', () => undefined);
    from.once('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
