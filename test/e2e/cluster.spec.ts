import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { Cluster } from 'ioredis';
import { LockService, type MasterSource, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import { RedlockHealthIndicator, RedlockHealthModule } from 'nestjs-redlock/terminus';
import { type ClusterOptions, startCluster } from '../support/cluster.js';
import { boot, closeAll } from './support/applications.js';
import { shared } from '../support/shared.js';

jest.setTimeout(60_000);

/** Wide enough for a busy machine. */
const PATIENT = { masterTimeout: '2s', connectTimeout: '20s', restartGuard: false } as const;
/** Without replicas, a primary that is down stays the owner of its slots. */
const STEADY: ClusterOptions = { replicas: 0, nodeTimeout: 60_000 };

@Injectable()
class Warehouse {
  inside = 0;
  most = 0;
  total = 0;

  @WithLock((article: string) => `stock:${article}`, { ttl: '10s', wait: '20s' })
  async book(_article: string): Promise<number> {
    this.most = Math.max(this.most, ++this.inside);
    await new Promise((resolve) => setImmediate(resolve));
    this.inside--;
    return ++this.total;
  }
}

function bootOn(masters: readonly MasterSource[], options: Partial<RedlockModuleOptions> = {}) {
  return boot({
    imports: [
      RedlockModule.forRoot({ ...PATIENT, ...options, masters }),
      ...[RedlockHealthModule, TerminusModule.forRoot()],
    ],
    providers: [Warehouse],
  });
}

function urlOfCluster(): string {
  return `redis+cluster://${cluster()
    .nodes.map(({ port }) => `127.0.0.1:${port}`)
    .join(',')}`;
}

afterEach(closeAll);

const cluster = shared(() => startCluster(STEADY));

describe('An application on a cluster', () => {
  it('locks methods and calls, on all primaries, however the cluster is given', async () => {
    const client = new Cluster(
      cluster().nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      { lazyConnect: true },
    );
    const sources: MasterSource[] = [urlOfCluster(), { cluster: cluster().urls }, client];
    const apps = [];
    for (const source of sources) apps.push(await bootOn([source]));
    client.disconnect();
    const warehouses = apps.map((app) => app.get(Warehouse));
    await Promise.all(warehouses.flatMap((warehouse) => [1, 2, 3].map(() => warehouse.book('one'))));
    expect(warehouses.map(({ most, total }) => [most, total])).toEqual([
      [1, 3],
      [1, 3],
      [1, 3],
    ]);

    const [one, other] = apps.map((app) => app.get(LockService));
    const names = Array.from({ length: 20 }, (_, i) => `article:${i}`);
    const lock = await one!.acquire(names, '10s');
    expect(await lock.fencingToken()).toBeGreaterThan(0);
    for (const name of names) expect(await other!.tryAcquire(name, '10s')).toBeNull();
    await lock.release();
    await (await other!.acquire(names, '10s')).release();
  });

  it('counts one cluster under two names once', async () => {
    const [first, second] = cluster().nodes.map(({ port }) => `redis+cluster://127.0.0.1:${port}`);
    const start = bootOn([first!, second!], { connectTimeout: '5s' });
    await expect(start).rejects.toMatchObject({
      name: 'RedlockConfigError',
      message: expect.stringContaining('the same server'),
    });
  });

  // The last one, because it ends the cluster.
  it('has the primaries in its health check, and in the advice of errors the URL for doctor', async () => {
    const app = await bootOn([urlOfCluster()]);
    const { redlock } = await app.get(RedlockHealthIndicator).isHealthy();
    const shards = cluster().nodes.map(({ port }) => {
      return { address: `127.0.0.1:${port}`, state: 'voting', partitions: expect.any(Number) };
    });
    expect(redlock.status).toBe('up');
    expect(redlock.masters[0]!.shards).toEqual(shards.sort((a, b) => (a.address < b.address ? -1 : 1)));

    for (const node of cluster().nodes) await cluster().kill(node);
    await expect(app.get(LockService).acquire('a', { ttl: '5s', wait: 0 })).rejects.toMatchObject({
      code: 'QUORUM_UNAVAILABLE',
      message: expect.stringContaining(`npx nestjs-redlock doctor --master '${urlOfCluster()}'`),
    });
  });
});
