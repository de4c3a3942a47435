import { createServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';

/** Express over HTTP/2: its request and response take over what those of HTTP/2 have. */
class ExpressOverHttp2 extends ExpressAdapter {
  override initHttpServer(): void {
    const app = this.getInstance<{ request: object; response: object } & Parameters<typeof createServer>[1]>();
    app.request = extended(app.request, Http2ServerRequest.prototype);
    app.response = extended(app.response, Http2ServerResponse.prototype);
    const server = createServer(app);
    // Nest closes the connections of HTTP/1 only.
    const sessions = new Set<{ destroy(): void }>();
    server.on('session', (session) => {
      sessions.add(session);
      session.once('close', () => sessions.delete(session));
    });
    this.httpServer = Object.assign(server, {
      closeAllConnections: () => {
        for (const session of sessions) session.destroy();
      },
    }) as never;
  }

  override async close(): Promise<void> {
    (this.httpServer as unknown as { closeAllConnections(): void }).closeAllConnections();
    await super.close();
  }
}

function extended(own: object, http2: object): object {
  const result: object = Object.create(own) as object;
  for (const key of Reflect.ownKeys(http2)) {
    if (key !== 'constructor') Object.defineProperty(result, key, Object.getOwnPropertyDescriptor(http2, key)!);
  }
  return result;
}

const fastifyOverHttp2 = { http2: true, forceCloseConnections: false } as unknown as object;

/** Both platforms, with both versions of HTTP. */
export const SERVERS = [
  { server: 'Express over HTTP/1', version: 1, adapter: (): AbstractHttpAdapter => new ExpressAdapter() },
  { server: 'Express over HTTP/2', version: 2, adapter: (): AbstractHttpAdapter => new ExpressOverHttp2() },
  { server: 'Fastify over HTTP/1', version: 1, adapter: (): AbstractHttpAdapter => new FastifyAdapter() },
  {
    server: 'Fastify over HTTP/2',
    version: 2,
    adapter: (): AbstractHttpAdapter => new FastifyAdapter(fastifyOverHttp2),
  },
] as const;
