import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { type Lock, LockService, type MasterSource, RedlockModule } from '../../lib/index.js';
import { SystemRandom } from '../../lib/runtime/system.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { withClient } from '../support/command.js';
import { eventually } from '../support/eventually.js';

/** Contains every kind of character that a URL encodes. */
const PASSWORD = 'pä ss@w/o?r#d%:1';
const USER = 'user-to-hide';
const encoded = encodeURIComponent(PASSWORD);
const SENTINEL = 'sentinel-password-to-hide';
/** Every token that was drawn. */
let draws: jest.SpiedFunction<SystemRandom['token']>;

/** Collects everything that the library outputs: log lines, console output, errors and return values. */
class Transcript implements LoggerService {
  readonly lines: string[] = [];
  log = (...args: unknown[]): void => this.keep(...args);
  warn = (...args: unknown[]): void => this.keep(...args);
  error = (...args: unknown[]): void => this.keep(...args);
  fatal = (...args: unknown[]): void => this.keep(...args);
  debug = (...args: unknown[]): void => this.keep(...args);
  verbose = (...args: unknown[]): void => this.keep(...args);

  /** Keeps an argument in every form in which a program could print it. */
  keep(...args: unknown[]): void {
    for (const arg of args) {
      this.lines.push(
        String(arg),
        `${JSON.stringify(arg) as string | undefined}`,
        inspect(arg, { depth: 10, getters: true }),
      );
      if (arg instanceof Error) this.keep(arg.message, arg.stack, arg.cause);
    }
  }

  get text(): string {
    return this.lines.join('\n');
  }
}

let transcript: Transcript;
let servers: RedisServer[];
let apps: INestApplicationContext[];

beforeEach(() => {
  transcript = new Transcript();
  [servers, apps] = [[], []];
  draws = jest.spyOn(SystemRandom.prototype, 'token');
  for (const method of ['log', 'warn', 'error', 'info', 'debug'] as const) {
    jest.spyOn(console, method).mockImplementation((...args) => transcript.keep(...args));
  }
});
afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
  await Promise.all(servers.map((server) => server.stop()));
  const tokens = draws.mock.results.map(({ value }) => value as string);
  jest.restoreAllMocks();
  expect(transcript.lines.length).toBeGreaterThan(0);
  for (const secret of [PASSWORD, encoded, encoded.toLowerCase(), encodeURI(PASSWORD), USER, SENTINEL]) {
    expect(transcript.text).not.toContain(secret);
  }
  for (const token of tokens) expect(transcript.text).not.toContain(token);
});

async function serve(...args: string[]): Promise<RedisServer> {
  const user = ['--user', USER, 'on', `>${PASSWORD}`, '~*', '&*', '+@all'];
  const server = await RedisServer.start({ args: [...user, '--requirepass', PASSWORD, ...args] });
  servers.push(server);
  return server;
}

const urlOf = ({ port }: RedisServer, user = USER, password = encoded): string =>
  `redis://${user}:${password}@127.0.0.1:${port}`;

async function start(masters: readonly MasterSource[], options: object = {}): Promise<LockService> {
  const module = RedlockModule.forRoot({ masters, connectTimeout: '10s', wait: 0, ...options });
  const app = await (
    await Test.createTestingModule({ imports: [module] })
      .setLogger(transcript)
      .compile()
  ).init();
  apps.push(app);
  return app.get(LockService);
}

/** Returns the error with which a call fails. */
async function failure(call: Promise<unknown>): Promise<Error> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Error);
  transcript.keep(error);
  return error as Error;
}

/** Runs a command as an operator does. */
async function operate({ port }: RedisServer, command: string, ...args: string[]): Promise<unknown> {
  return withClient(port, (client) => client.call(command, ...args), { username: USER, password: PASSWORD });
}

/** Returns the value of a key on the server, which is the token. */
const tokenOf = (server: RedisServer, resource: string) =>
  operate(server, 'GET', `lock:${resource}`) as Promise<string>;

async function lookAround(service: LockService, ...locks: Lock[]): Promise<void> {
  transcript.keep(service.status(), await service.inspect('a'), service, ...locks);
}

describe('No secret is disclosed', () => {
  it('by an application that works and shuts down with a lock still held', async () => {
    const server = await serve();
    const service = await start([urlOf(server)], { drainTimeout: 0 });
    const lock = await service.acquire('a', '10s');
    const token = await tokenOf(server, 'a');
    expect(token.length).toBeGreaterThan(20);
    await failure(service.acquire('a', '10s'));
    await lookAround(service, lock);
    await apps.pop()?.close();
    transcript.keep(lock.loss);
    expect(lock.loss).toMatchObject({ cause: 'shutdown' });
    expect(transcript.text).not.toContain(token);
    expect(draws).toHaveBeenCalled();
  });

  it.each<[string, (server: RedisServer) => MasterSource]>([
    ['a URL', (server) => urlOf(server, USER, encodeURIComponent(`${PASSWORD}x`))],
    ['options', ({ port }) => ({ host: '127.0.0.1', port, username: USER, password: `${PASSWORD}x` })],
    [
      'a client',
      ({ port }) => new Redis(port, '127.0.0.1', { lazyConnect: true, username: USER, password: `${PASSWORD}x` }),
    ],
  ])('by a boot with a wrong password in %s', async (_, source) => {
    const server = await serve();
    const error = await failure(start([source(server)], { connectTimeout: '1s' }));
    expect(error).toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    // Between two attempts, the master reports another reason.
    const service = await start([source(server)], { lazyConnect: true });
    await eventually(() => {
      const status = service.status();
      transcript.keep(status);
      return /WRONGPASS/.test(status.masters[0]?.reason ?? '');
    });
  });

  it('by a boot without a server, or with sentinels that are absent', async () => {
    const sentinel = { host: '127.0.0.1', port: 1 };
    const masters = [
      'redis://' + `${USER}:${encoded}@127.0.0.1:1`,
      { sentinels: [sentinel], name: 'm', password: PASSWORD, sentinelPassword: SENTINEL },
    ];
    const error = await failure(start(masters, { connectTimeout: 200 }));
    expect(error.message).toMatch(/cannot start within 200 ms/);
  });

  it('by a server that refuses commands and repeats them', async () => {
    const renamed = ['SET', 'EVALSHA'].flatMap((name) => ['--rename-command', name, '']);
    const service = await start([urlOf(await serve(...renamed))]);
    const error = await failure(service.acquire('a'));
    expect(error.message).toMatch(/unknown command/i);
    await lookAround(service);
  });

  it('by a lock that is lost to another holder, or by one that expires', async () => {
    const server = await serve();
    const service = await start([urlOf(server)]);
    const lock = await service.acquire('a', { ttl: '1s', extend: true, wait: '10s' });
    const token = await tokenOf(server, 'a');
    const expiring = await service.acquire('b', { ttl: '1s', extend: true, wait: '10s' });
    const other = await tokenOf(server, 'b');
    await operate(server, 'SET', 'lock:a', 'another process');
    await eventually(() => lock.loss !== undefined);
    server.pause();
    await eventually(() => expiring.loss !== undefined);
    transcript.keep(lock.loss, expiring.loss, lock.signal.reason);
    expect([lock.loss?.cause, expiring.loss?.cause]).toEqual(['owner-changed', 'expired']);
    const error = await failure(service.acquire('c'));
    expect(error.message).toMatch(/no answer|silent|unreachable/);
    await lookAround(service, lock, expiring);
    server.resume();
    for (const secret of [token, other]) expect(transcript.text).not.toContain(secret);
  });
});
