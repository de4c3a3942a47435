import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  type LockObserver,
  LockService,
  QuorumUnavailableError,
  RedlockModule,
  type RedlockModuleOptions,
} from 'nestjs-redlock';
import { command } from '../support/command.js';
import { deadPort } from '../support/dead-port.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, closeAll, logs } from './support/applications.js';
import { MISTAKES, PASSWORD, startMistakes } from '../support/mistakes.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { ManualClock } from 'nestjs-redlock/testing';
import { outcomeOf } from './support/deferred.js';
import { Locks } from './support/locks.js';
import { throwing } from '../support/throwing.js';
import { shared } from '../support/shared.js';

jest.setTimeout(90_000);

describe('Boot on real masters', () => {
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

  it('connects to URLs, options and clients, and leaves no connection behind', async () => {
    const client = new Redis(urls[2]!, { lazyConnect: true });
    const port = Number(new URL(urls[1]!).port);
    const app = await start({ masters: [urls[0]!, { host: '127.0.0.1', port }, client], keyPrefix: 'boot:' });
    await app.get(LockService).withLock('a', '5s', async () => {
      const held = await Promise.all(masters.servers.map((server) => command(server.port, 'EXISTS', 'boot:a')));
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
    const failure = await outcomeOf(start({ masters: [urls[0]!, ...dead], connectTimeout: '300ms' }));
    expect(failure).toBeInstanceOf(QuorumUnavailableError);
    const { message, answers } = failure as QuorumUnavailableError;
    expect(message).toContain('cannot start within 300 ms: 2 of 3 masters must vote (');
    for (const url of dead) expect(message).toMatch(new RegExp(`127.0.0.1:${new URL(url).port}: .*ECONNREFUSED`));
    expect(answers.map(({ master }) => master)).toEqual(dead.map((url) => new URL(url).host));
    expect(logs).toContainEqual(
      expect.stringMatching(/^error .*; `lazyConnect: true` starts without waiting for them$/),
    );
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
});

describe('Problems at boot', () => {
  /** Longer than the time limit of every test. */
  const NEVER = '10m';

  const start = (options: RedlockModuleOptions) => boot({ imports: [RedlockModule.forRoot(options)] });

  const mistakes = shared(startMistakes);
  it('A boot with a problem that waiting cannot end fails long before connectTimeout, names the problem, and does not recommend lazyConnect', async () => {
    const source = mistakes().sourceOf('a wrong password');
    const error = await outcomeOf(start({ masters: [source], connectTimeout: NEVER }));
    expect(error).toBeInstanceOf(QuorumUnavailableError);
    const { message } = error as Error;
    const address = `127.0.0.1:${source.port}`;
    const reason = MISTAKES['a wrong password'];
    expect(message).toBe(
      `cannot start: 1 of 1 master must vote (${address}: ${reason}). ` +
        `To examine them: npx nestjs-redlock doctor --master redis://:PASSWORD@${address}`,
    );
    expect(logs.filter((line) => line.startsWith('error'))).toEqual([
      expect.stringContaining('waiting does not help, the servers or their settings have to be corrected'),
    ]);
    expect(logs.join('\n')).not.toMatch(new RegExp(`lazyConnect|${PASSWORD}`));
  });

  describe('A minority of masters that refuses the password', () => {
    const masters = sharedMasters(2);

    it.each([false, true])('is named in the log once, with lazyConnect: %s', async (lazyConnect) => {
      const source = mistakes().sourceOf('a wrong password');
      const refusals: unknown[] = [];
      const observer: LockObserver = { masterRefused: (...refusal) => refusals.push(refusal) };
      const options = { restartGuard: false, lazyConnect, observers: [observer] };
      const app = await start({ masters: [...masters.urls, source], ...options });
      await eventually(() => logs.some((line) => line.includes('locks are available')));
      const name = `127.0.0.1:${source.port}`;
      const reason = MISTAKES['a wrong password'];
      expect(refusals).toEqual([[name, reason]]);
      expect(app.get(LockService).status().masters[2]).toMatchObject({ state: 'refused', reason });
      expect(logs.filter((line) => line.includes(name) && !line.includes('locks need'))).toEqual([
        `warn master ${name} does not vote: ${reason}`,
      ]);
    });

    it('is named when the password changes later, and when it is accepted again, once each', async () => {
      await using masters = await startMasters(3);
      const { port } = masters.servers[0]!;
      await start({ masters: [...masters.urls], restartGuard: false });
      await eventually(() => logs.some((line) => line.includes('locks are available')));
      const own = (): string[] =>
        logs.filter((line) => line.includes(`127.0.0.1:${port}`) && !line.includes('locks need'));
      const operator = new Redis(port, '127.0.0.1');
      await operator.config('SET', 'requirepass', 'other');
      await operator.auth('other');
      await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await eventually(() => own().length >= 2);
      await operator.config('SET', 'requirepass', '');
      operator.disconnect();
      await eventually(() => own().length >= 3);
      expect(own()).toEqual([
        expect.stringMatching(/^warn lost the connection to /),
        `warn master 127.0.0.1:${port} does not vote: NOAUTH it requires a password: put user and password into its URL`,
        `log connected to 127.0.0.1:${port} again`,
      ]);
    });
  });

  describe('A masterTimeout that is shorter than a round trip', () => {
    const masters = sharedMasters(3);

    it.each([false, true])(
      'is reported with the numbers and the value to set, with lazyConnect: %s',
      async (lazyConnect) => {
        await using far = await TcpProxy.to(masters.servers[1]!.port);
        await using farther = await TcpProxy.to(masters.servers[2]!.port);
        far.replies.delay = 120;
        farther.replies.delay = 160;
        const options = { masterTimeout: '100ms', restartGuard: false, lazyConnect } as const;
        await start({ masters: [masters.urls[0]!, far.url, farther.url], ...options });
        await eventually(() => logs.some((line) => line.includes('masterTimeout')));
        expect(logs.filter((line) => line.includes('masterTimeout'))).toEqual([
          expect.stringMatching(
            new RegExp(
              `^warn masterTimeout \\(100 ms\\) is too short: 127\\.0\\.0\\.1:${far.port} in 1\\d\\d ms, ` +
                `127\\.0\\.0\\.1:${farther.port} in \\d{3} ms at the fastest, so no lock can be taken; ` +
                `set masterTimeout to '\\d{3}ms' or more$`,
            ),
          ),
        ]);
      },
    );

    it('is reported once if the masters start after an application with lazyConnect', async () => {
      const server = masters.servers[0]!;
      await server.kill();
      await using far = await TcpProxy.to(server.port);
      far.replies.delay = 120;
      await start({ masters: [far.url], masterTimeout: '100ms', restartGuard: false, lazyConnect: true });
      await eventually(() => logs.some((line) => line.includes('no lock can be taken')));
      await server.restart();
      await eventually(() => logs.some((line) => line.includes('too short')));
      expect(logs.filter((line) => line.includes('too short'))).toHaveLength(1);
    });
  });
});

const broken = throwing(new Error('the log is full'));

describe('A logger that throws', () => {
  afterEach(async () => {
    Logger.overrideLogger(false);
    await closeAll();
  });

  const observer: LockObserver = { lockLost: broken };

  it.each<[string, Partial<RedlockModuleOptions>]>([
    ['without observers', {}],
    ['beside an observer that throws', { observers: [observer] }],
    ['while locking is disabled', { enabled: false }],
  ])('disturbs neither the timer that notices a loss nor the lock, %s', async (_, options) => {
    const clock = new ManualClock();
    const locks = new Locks(3, { clock });
    const app = await boot({ imports: [locks.module(options)] });
    Logger.overrideLogger({ log: broken, warn: broken, error: broken });
    const lock = await app.get(LockService).acquire('a', '10s');
    // Runs the callbacks of timers, so an error in a callback is thrown here.
    await clock.advance(10_000);
    expect(lock.loss).toMatchObject({ cause: 'expired' });
    expect(lock.signal.aborted).toBe(true);
  });
});
