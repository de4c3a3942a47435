import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { LoginFunction, RedisMasterSource } from '../../lib/redis/source.interface.js';
import { acquiring, ask } from '../support/ask.js';
import { startCluster } from '../support/cluster.js';
import { withClient } from '../support/command.js';
import { contextOf } from '../support/context.js';
import { deferred } from '../e2e/support/deferred.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const PATIENT = { masterTimeout: 2_000 } as const;

/** A user whose password the test changes, on servers that otherwise take no user. */
class Rotation {
  current = '';
  asked = 0;

  constructor(private readonly ports: readonly number[]) {}

  readonly password: LoginFunction = () => {
    this.asked++;
    return Promise.resolve(this.current);
  };

  /** As a service does it: connections stay until they are ended. */
  async change(password: string): Promise<void> {
    this.current = password;
    await this.each('ACL', 'SETUSER', 'app', 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
  }

  endConnections(): Promise<void> {
    return this.each('CLIENT', 'KILL', 'USER', 'app');
  }

  private async each(...args: string[]): Promise<void> {
    const [name = '', ...rest] = args;
    await Promise.all(this.ports.map((port) => withClient(port, (client) => client.call(name, ...rest))));
  }
}

describe('A password that is a function', () => {
  const masters = sharedMasters(1);
  const open: RedisMaster[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((master) => master.close()));
  });

  const port = (): number => masters.servers[0]!.port;

  function master(password: unknown): RedisMaster {
    const source = { host: '127.0.0.1', port: port(), username: () => 'app', password } as RedisMasterSource;
    const created = redisMaster('masters[0]', source, contextOf());
    open.push(created);
    return created;
  }

  it('is asked at each connection, and the master votes again after a rotation', async () => {
    const rotation = new Rotation([port()]);
    await rotation.change('first-password');
    const created = master(rotation.password);
    await created.connect();
    expect([created.problem(), rotation.asked]).toEqual([undefined, 1]);
    // The connection for notifications is another one.
    created.listen('me', () => undefined);
    await eventually(() => rotation.asked === 2);

    await rotation.change('second-password');
    expect(await ask(created, acquiring(['a'], 'token'))).toEqual({ kind: 'granted' });
    await rotation.endConnections();
    await eventually(() => rotation.asked >= 4 && created.problem() === undefined);
    expect(await ask(created, acquiring(['b'], 'token'))).toEqual({ kind: 'granted' });
  });

  it.each<[string, LoginFunction, string]>([
    ['throws', () => Promise.reject(new Error('no token')), 'its function `password` has failed: no token'],
    ['is empty', () => '', 'its function `password` must give a text, and gave an empty one'],
    [
      'gives something else',
      (() => ({ secret: 'do-not-show' })) as unknown as LoginFunction,
      'its function `password` must give a text, and gave object',
    ],
  ])('is named as the reason if it %s, and asked again', async (_, failing, reason) => {
    const rotation = new Rotation([port()]);
    await rotation.change('right-password');
    let isFixed = false;
    const created = master(() => (isFixed ? rotation.password() : failing()));
    await created.connect();
    expect(created.problem()?.reason).toBe(reason);
    isFixed = true;
    await eventually(() => created.problem() === undefined);
  });

  it('is not waited for by a close, after which nothing connects', async () => {
    const rotation = new Rotation([port()]);
    await rotation.change('right-password');
    const answer = deferred<string>();
    const created = master(() => answer.promise);
    const connecting = created.connect();
    await created.close();
    await connecting;
    answer.resolve('right-password');
    await new Promise(setImmediate);
    const clients = await withClient(port(), (client) => client.call('CLIENT', 'LIST'));
    expect(clients).not.toContain('user=app');
  });
});

it('A password of a cluster that is a function is asked for each node, also after a rotation', async () => {
  await using cluster = await startCluster({ replicas: 0 });
  const rotation = new Rotation(cluster.nodes.map(({ port }) => port));
  await rotation.change('first-password');
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const source: RedisMasterSource = { cluster: nodes, username: 'app', password: rotation.password };
  const holder = await Contender.on([source], PATIENT, {}, { within: 30_000 });
  const names = Array.from({ length: 20 }, (_, index) => `invoice:${index}`);
  for (const name of names) await (await holder.acquire(name)).release();

  await rotation.change('second-password');
  await rotation.endConnections();
  const asked = rotation.asked;
  for (const name of names) await (await holder.acquire(`${name}:later`, undefined, { wait: '30s' })).release();
  expect(rotation.asked).toBeGreaterThanOrEqual(asked);
  expect(asked).toBeGreaterThanOrEqual(nodes.length);
  await holder.close();
});
