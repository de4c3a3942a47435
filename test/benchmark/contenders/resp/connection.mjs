import { once } from 'node:events';
import { connect } from 'node:net';

/**
 * A connection that writes once per tick and parses the replies that a lock needs: simple, integer, null, bulk, error.
 */
export class Connection {
  #socket;
  #outgoing = '';
  #waiting = [];
  #first = 0;
  #rest = '';

  static async open(url) {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new Connection(socket);
  }

  constructor(socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text) => this.#read(this.#rest + text));
    socket.on('error', () => {});
  }

  /** @param reply receives a string or an Error */
  send(command, reply) {
    if (this.#outgoing === '') setImmediate(() => this.#flush());
    this.#outgoing += command;
    this.#waiting.push(reply);
  }

  close() {
    this.#socket.destroy();
  }

  #flush() {
    this.#socket.write(this.#outgoing, 'latin1');
    this.#outgoing = '';
  }

  #read(text) {
    let start = 0;
    for (;;) {
      let end = text.indexOf('\r\n', start);
      if (end < 0) break;
      const line = text.slice(start + 1, end);
      if (text[start] === '$' && line !== '-1') {
        end += 2 + Number(line);
        if (end + 2 > text.length) break;
      }
      this.#next()(text[start] === '-' ? new Error(line) : line);
      start = end + 2;
    }
    this.#rest = text.slice(start);
  }

  #next() {
    const reply = this.#waiting[this.#first++];
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    return reply;
  }
}
