import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  LockService,
  QuorumUnavailableError,
  RedlockModule,
  type RedlockModuleOptions,
  WithLock,
} from 'nestjs-redlock';
import { deadPort } from '../support/dead-port.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { boot, closeAll, logs } from './support/applications.js';

async function deadUrls(count: number): Promise<string[]> {
  const ports = await Promise.all(Array.from({ length: count }, deadPort));
  return ports.map((port) => `redis://127.0.0.1:${port}`);
}

/** Handles that keep a process alive and could belong to the library. */
function handles(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => /TCP|Pipe(Connect|Wrap)|GetAddrInfo|Timeout/.test(kind));
}

/** Without the guard, because the servers have just started. */
const start = (options: RedlockModuleOptions) =>
  boot({ imports: [RedlockModule.forRoot({ restartGuard: false, ...options })] });
const warnings = () => logs.filter((line) => line.startsWith('warn'));

let masters: Masters;
let urls: readonly string[];
let before: string[];

beforeAll(async () => {
  masters = await startMasters(3);
  urls = masters.urls;
  before = handles();
});
afterEach(async () => {
  await closeAll();
  await eventually(() => handles().length <= before.length);
});
afterAll(() => masters.stop());

describe('Boot on real masters', () => {
  it('connects to URLs, options and clients, and leaves no connection behind', async () => {
    const client = new Redis(urls[2]!, { lazyConnect: true });
    const port = Number(new URL(urls[1]!).port);
    const app = await start({ masters: [urls[0]!, { host: '127.0.0.1', port }, client], keyPrefix: 'boot:' });
    await app.get(LockService).withLock('a', '5s', async () => {
      const held = await Promise.all(
        urls.map(async (url) => {
          const probe = new Redis(url);
          const exists = await probe.exists('boot:a');
          probe.disconnect();
          return exists;
        }),
      );
      expect(held).toEqual([1, 1, 1]);
    });
    expect(client.status).toBe('wait');
    expect(warnings()).toEqual([]);
  });

  it('leaves a user’s own client open and untouched', async () => {
    const client = new Redis(urls[0]!);
    await client.set('mine', 'kept');
    const app = await start({ masters: [client, urls[1]!, urls[2]!] });
    await app.get(LockService).withLock('a', '5s', () => undefined);
    await app.close();
    expect(client.status).toBe('ready');
    await expect(client.get('mine')).resolves.toBe('kept');
    await client.quit();
  });

  it('continues with a warning when a minority is down', async () => {
    const [dead] = await deadUrls(1);
    const app = await start({ masters: [urls[0]!, dead!, urls[2]!] });
    expect(warnings()).toEqual([expect.stringMatching(`master 127.0.0.1:${new URL(dead!).port} .*ECONNREFUSED`)]);
    await expect(app.get(LockService).withLock('a', '5s', () => 'done')).resolves.toBe('done');
  });

  it('fails when a majority is down, names each master and its problem, and closes every connection', async () => {
    const dead = await deadUrls(2);
    const failure: unknown = await start({ masters: [urls[0]!, ...dead], connectTimeout: '300ms' }).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(QuorumUnavailableError);
    const { message, answers } = failure as QuorumUnavailableError;
    for (const url of dead) expect(message).toMatch(new RegExp(`127.0.0.1:${new URL(url).port}: .*ECONNREFUSED`));
    expect(answers.map(({ master }) => master)).toEqual(dead.map((url) => new URL(url).host));
    expect(logs.some((line) => line.startsWith('error') && line.includes('lazyConnect'))).toBe(true);
    await eventually(() => handles().length <= before.length);
  });

  it('closes its connections when invalid options of a decorator end the boot', async () => {
    @Injectable()
    class Wrong {
      @WithLock('a', '2h')
      async run(): Promise<void> {}
    }
    const imports = [RedlockModule.forRoot([...urls])];
    await expect(boot({ imports, providers: [Wrong] })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    await eventually(() => handles().length <= before.length);
  });

  it('with lazyConnect boots without masters, fails calls, and locks as soon as a majority is up', async () => {
    const dead = await deadUrls(1);
    const app = await start({ masters: dead, lazyConnect: true, wait: 0 });
    await expect(app.get(LockService).acquire('a')).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    await expect(app.get(LockService).tryAcquire('a')).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });

    const lazy = await start({ masters: [...urls], lazyConnect: true });
    await expect(lazy.get(LockService).withLock('a', '5s', () => 'done')).resolves.toBe('done');
  });

  it('refuses new locks and keeps none after the application has closed', async () => {
    const app = await start({ masters: [...urls], drainTimeout: 0 });
    const locks = app.get(LockService);
    const lock = await locks.acquire('left', '30s');
    await app.close();
    expect(lock.isHeld).toBe(false);
    expect(lock.loss).toMatchObject({ cause: 'shutdown' });
    await expect(locks.acquire('left')).rejects.toMatchObject({ code: 'LOCK_SERVICE_STOPPED' });
    const probe = new Redis(urls[0]!);
    await expect(probe.exists('lock:left')).resolves.toBe(0);
    probe.disconnect();
  });
});
