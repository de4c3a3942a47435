import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { requestsDuring, trafficDuring } from './sockets.mjs';

const request = (...parts: string[]) =>
  `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;

describe('What a process sends to its masters', () => {
  let server: Server;
  let client: Socket;

  beforeEach(async () => {
    server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(client, 'connect');
  });

  afterEach(async () => {
    client.destroy();
    server.close();
    await once(server, 'close');
  });

  const countOf = async (...chunks: (string | Buffer)[]) => {
    const { requests } = await requestsDuring(async () => {
      for (const chunk of chunks) client.write(chunk);
      return Promise.resolve({});
    });
    return requests;
  };

  it('counts commands, also several in one write, as text or as bytes', async () => {
    const set = request('SET', 'key', 'token');
    expect(await countOf(set, Buffer.from(set + set))).toBe(3);
  });

  it('does not count what a client sends when it connects or idles', async () => {
    expect(await countOf(request('PING'), request('hello', '3'), request('get', 'key'))).toBe(1);
  });

  it('does not count a value with line breaks as commands', async () => {
    expect(await countOf(request('SET', 'key', 'first\r\nsecond'))).toBe(1);
  });

  it('observes nothing once the work is done', async () => {
    await countOf(request('GET', 'key'));
    expect(Object.hasOwn(client, 'write')).toBe(false);
  });

  it('counts the bytes of both directions', async () => {
    const { sent, received } = await trafficDuring(async () => {
      client.write('four');
      await once(client, 'data');
      return {};
    });
    expect([sent, received]).toEqual([4, 4]);
  });
});
