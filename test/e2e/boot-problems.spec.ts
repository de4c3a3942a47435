import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type LockObserver,
  LockService,
  QuorumUnavailableError,
  RedlockModule,
  type RedlockModuleOptions,
} from 'nestjs-redlock';
import { Redis } from 'ioredis';
import { command } from '../support/command.js';
import { deadPort } from '../support/dead-port.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { type Mistake, MISTAKES, type Mistakes, PASSWORD, startMistakes } from '../support/mistakes.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { boot, closeAll, logs } from './support/applications.js';

/** Longer than the time limit of every test. */
const NEVER = '10m';

const start = (options: RedlockModuleOptions) => boot({ imports: [RedlockModule.forRoot(options)] });
const failureOf = (options: RedlockModuleOptions): Promise<unknown> => start(options).catch((error: unknown) => error);

let mistakes: Mistakes;
beforeAll(async () => {
  mistakes = await startMistakes();
}, 60_000);
afterEach(closeAll);
afterAll(async () => {
  await mistakes[Symbol.asyncDispose]();
});

describe('A boot with a problem that waiting cannot end', () => {
  it.each(Object.entries(MISTAKES))(
    'fails long before connectTimeout, names the problem, and does not recommend lazyConnect: %s',
    async (mistake, reason) => {
      const source = mistakes.sourceOf(mistake as Mistake);
      const error = await failureOf({ masters: [source], connectTimeout: NEVER });
      expect(error).toBeInstanceOf(QuorumUnavailableError);
      const { message } = error as Error;
      const address = `127.0.0.1:${source.port}`;
      expect(message).toContain(`cannot start: 1 of 1 master must vote (${address}: ${reason}). To examine them: `);
      expect(message).toContain('npx nestjs-redlock doctor --master redis');
      expect(message).toMatch(new RegExp(`${address}$`));
      expect(message).not.toContain('unreachable');
      expect(logs.filter((line) => line.startsWith('error'))).toEqual([
        expect.stringContaining('waiting does not help, the servers or their settings have to be corrected'),
      ]);
      expect(logs.join('\n') + message).not.toMatch(new RegExp(`lazyConnect|${PASSWORD}`));
    },
    30_000,
  );

  it('gives the command to examine the masters, with placeholders for credentials', async () => {
    const url = mistakes.urlOf('a wrong password').replace(':' + PASSWORD, `app:${PASSWORD}`);
    const { message } = (await failureOf({ masters: [url], connectTimeout: NEVER, keyPrefix: 'a b:' })) as Error;
    const { host } = new URL(url);
    expect(message).toContain(
      `To examine them: npx nestjs-redlock doctor --master redis://USER:PASSWORD@${host} --prefix 'a b:'`,
    );
  }, 30_000);

  it('still waits for connectTimeout if masters are only down, and recommends lazyConnect', async () => {
    const url = `redis://127.0.0.1:${await deadPort()}`;
    const { message } = (await failureOf({ masters: [url], connectTimeout: '200ms' })) as Error;
    expect(message).toContain('cannot start within 200 ms: 1 of 1 master must vote (');
    expect(logs.join('\n')).toContain('`lazyConnect: true` starts without waiting for them');
  }, 30_000);

  it('goes on with a warning if a quorum has no problem, and status() reports it as refused', async () => {
    await using masters = await startMasters(2);
    const source = mistakes.sourceOf('a wrong password');
    const app = await start({ masters: [...masters.urls, source], restartGuard: false });
    const reason = MISTAKES['a wrong password'];
    expect(logs).toContain(`warn master 127.0.0.1:${source.port} does not vote: ${reason}`);
    expect(app.get(LockService).status().masters[2]).toMatchObject({ state: 'refused', reason });
  }, 30_000);
});

describe('A minority of masters that refuses the password', () => {
  it.each([false, true])(
    'is named in the log once, with lazyConnect: %s',
    async (lazyConnect) => {
      await using masters = await startMasters(2);
      const source = mistakes.sourceOf('a wrong password');
      const refusals: unknown[] = [];
      const observer: LockObserver = { masterRefused: (...refusal) => refusals.push(refusal) };
      await start({ masters: [...masters.urls, source], restartGuard: false, lazyConnect, observers: [observer] });
      await eventually(() => logs.some((line) => line.includes('locks are available')));
      const name = `127.0.0.1:${source.port}`;
      const reason = MISTAKES['a wrong password'];
      expect(refusals).toEqual([[name, reason]]);
      expect(logs.filter((line) => line.includes(name) && !line.includes('locks need'))).toEqual([
        `warn master ${name} does not vote: ${reason}`,
      ]);
    },
    30_000,
  );

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
  }, 60_000);
});

describe('A master whose password is corrected while the application waits', () => {
  it('is used as soon as the server accepts the login', async () => {
    await using masters = await startMasters(1);
    const [{ port }] = masters.servers as [(typeof masters.servers)[0]];
    await command(port, 'CONFIG', 'SET', 'requirepass', 'other');
    const app = await start({ masters: [{ host: '127.0.0.1', port, password: PASSWORD }], lazyConnect: true });
    const stateOf = () => app.get(LockService).status().masters[0];
    await eventually(() => stateOf()?.state === 'refused');
    expect(stateOf()?.reason).toBe(MISTAKES['a wrong password']);
    const operator = new Redis(port, '127.0.0.1', { password: 'other' });
    await operator.config('SET', 'requirepass', PASSWORD);
    operator.disconnect();
    await eventually(() => stateOf()?.state === 'voting');
  }, 30_000);
});

describe('A masterTimeout that is shorter than a round trip', () => {
  it.each([false, true])(
    'is reported with the numbers and the value to set, with lazyConnect: %s',
    async (lazyConnect) => {
      await using masters = await startMasters(3);
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
    30_000,
  );

  it('is reported once if the masters start after an application with lazyConnect', async () => {
    await using masters = await startMasters(1);
    const [server] = masters.servers as [(typeof masters.servers)[0]];
    await server.kill();
    await using far = await TcpProxy.to(server.port);
    far.replies.delay = 120;
    await start({ masters: [far.url], masterTimeout: '100ms', restartGuard: false, lazyConnect: true });
    await eventually(() => logs.some((line) => line.includes('no lock can be taken')));
    await server.restart();
    await eventually(() => logs.some((line) => line.includes('too short')));
    expect(logs.filter((line) => line.includes('too short'))).toHaveLength(1);
  }, 30_000);
});
