import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { type ClientProxy, ClientProxyFactory, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { WebSocket } from 'ws';
import { closeLater, compile, listen } from './applications.js';

const HOST = '127.0.0.1';

/** Boots a module as a microservice over TCP. The test closes the client. */
export async function startMicroservice(
  metadata: ModuleMetadata,
): Promise<{ readonly app: INestApplication; readonly client: ClientProxy }> {
  const app = closeLater((await compile(metadata)).createNestApplication());
  const server = app.connectMicroservice<MicroserviceOptions>({
    ...{ transport: Transport.TCP, options: { port: 0, host: HOST } },
  });
  await app.startAllMicroservices();
  await app.init();
  const { port } = server.unwrap<Server>().address() as AddressInfo;
  return { app, client: ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: HOST } }) };
}

/** Boots a module with a gateway, and connects a client to it, which the test closes. */
export async function startGateway(
  metadata: ModuleMetadata,
): Promise<{ readonly app: INestApplication; readonly client: SocketClient }> {
  const { app, url } = await listen(metadata, undefined, (host) => host.useWebSocketAdapter(new WsAdapter(host)));
  return { app, client: await SocketClient.of(url.replace('http', 'ws')) };
}

export class SocketClient {
  private constructor(private readonly socket: WebSocket) {}

  static async of(url: string): Promise<SocketClient> {
    const socket = new WebSocket(url);
    await once(socket, 'open');
    return new SocketClient(socket);
  }

  send(event: string, data: unknown): void {
    this.socket.send(JSON.stringify({ event, data }));
  }

  async receive(): Promise<unknown> {
    const [message] = (await once(this.socket, 'message')) as [Buffer];
    return JSON.parse(message.toString()) as unknown;
  }

  /** Ends the connection without a farewell. */
  async terminate(): Promise<void> {
    this.socket.terminate();
    await once(this.socket, 'close');
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    this.socket.close();
    await once(this.socket, 'close');
  }
}
