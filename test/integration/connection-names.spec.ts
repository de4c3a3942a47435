import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { contextOf } from '../support/context.js';
import { redisMaster } from '../../lib/redis/master-source.js';

let masters: Masters;

beforeAll(async () => {
  masters = await startMasters(1);
});
afterAll(() => masters.stop());

/** The names of the connections that the server lists, without those that have none. */
async function namesOnServer(): Promise<string[]> {
  const list = String(await command(masters.servers[0]!.port, 'CLIENT', 'LIST'));
  return [...list.matchAll(/ name=(\S+)/g)].map(([, name = '']) => name).sort();
}

describe('On a master, an application is listed', () => {
  it('by the name of its instance, with its connection for notifications', async () => {
    await using holder = await Contender.on(masters.urls, { instance: 'web:1' });
    await using waiter = await Contender.on(masters.urls, { instance: 'web:2' });
    const lock = await holder.acquire('a');
    const waiting = waiter.acquire('a', '10s', { wait: '30s' });
    const expected = ['nestjs-redlock:web:1', 'nestjs-redlock:web:2', 'nestjs-redlock:web:2'];
    await eventually(async () => (await namesOnServer()).join() === expected.join());
    await lock.release();
    await (await waiting).release();
  }, 60_000);

  it.each<[string, (port: number) => object]>([
    ['options', (port) => ({ host: '127.0.0.1', port, connectionName: 'mine' })],
    ['a client', (port) => new Redis({ host: '127.0.0.1', port, connectionName: 'mine', lazyConnect: true })],
  ])('by the name that the user gives in %s', async (_, source) => {
    const master = redisMaster('masters[0]', source(masters.servers[0]!.port), contextOf());
    await master.connect();
    await eventually(async () => (await namesOnServer()).includes('mine'));
    expect(await namesOnServer()).toContain('mine');
    await master.close();
  });
});
