import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { WriteRequest } from './register.js';

/** A worker's connection to the register. Answers arrive in the order of the writes. */
export class Writer {
  private readonly waiting: ((accepted: boolean) => void)[] = [];

  private constructor(private readonly socket: Socket) {
    createInterface(socket).on('line', (line) => this.waiting.shift()?.(line === 'accepted'));
  }

  static async to(port: number): Promise<Writer> {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    await once(socket, 'connect');
    return new Writer(socket);
  }

  /** Resolves with whether the write was accepted. */
  write(request: WriteRequest): Promise<boolean> {
    this.socket.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  end(): void {
    this.socket.end();
  }
}
