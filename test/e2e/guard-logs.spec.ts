import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService, QuorumUnavailableError, RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { boot, closeAll, logs } from './support/applications.js';

const start = (options: RedlockModuleOptions) => boot({ imports: [RedlockModule.forRoot(options)] });

/** The log lines about one master, in order. */
function saidOf(port: number): string[] {
  return logs.filter((line) => line.includes(`master 127.0.0.1:${port} `));
}

afterEach(closeAll);

describe('An application that boots together with its masters', () => {
  it('logs what it waits for and how to change that, and keeps its wait budgets', async () => {
    await using masters = await startMasters(3);
    // Long enough to outlast any boot: new masters end the quarantine early.
    const app = await start({ masters: [...masters.urls], ttl: '2s', maxTtl: '60s', masterTimeout: '500ms' });
    const locks = app.get(LockService);
    expect(locks.status()).toMatchObject({ canVote: false, quorum: 2 });
    for (const { port } of masters.servers) {
      const reason = 'since its data is new to all processes: it may have lost locks that are held';
      const options = '\\(see restartGuard and durable\\)';
      const line = `^warn master 127\\.0\\.0\\.1:${port} does not vote for up to \\d+ ms, ${reason} ${options}$`;
      await eventually(() => saidOf(port).length > 0);
      expect(saidOf(port)).toEqual([expect.stringMatching(line)]);
    }

    const refused = await locks.acquire('a', { wait: 0 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(QuorumUnavailableError);
    // As many answers as it takes to make a quorum impossible.
    const answers = String(refused).match(
      /does not vote for up to \d+ ms more, its data is new to all processes \(see restartGuard\)/g,
    );
    expect(answers?.length).toBeGreaterThanOrEqual(2);
    const asked = performance.now();
    await expect(locks.acquire('a', { wait: '100ms' })).rejects.toBeInstanceOf(QuorumUnavailableError);
    expect(performance.now() - asked).toBeGreaterThanOrEqual(95);

    await expect(locks.withLock('a', { wait: '30s' }, () => 'done')).resolves.toBe('done');
    await eventually(() => masters.servers.every(({ port }) => saidOf(port).length === 2));
    for (const { port } of masters.servers) expect(saidOf(port)[1]).toBe(`log master 127.0.0.1:${port} votes again`);
    expect(locks.status()).toMatchObject({ canVote: true, masters: Array(3).fill({ state: 'voting' }) });
  }, 60_000);

  it('gets its first lock within the usual budget with settings for trials', async () => {
    await using masters = await startMasters(3);
    const app = await start({ masters: [...masters.urls], ttl: '2s', maxTtl: '2s', masterTimeout: '500ms' });
    await expect(app.get(LockService).withLock('a', () => 'done')).resolves.toBe('done');
  }, 30_000);
});

describe('A master that loses its vote while the application runs', () => {
  let masters: Masters;

  beforeAll(async () => {
    masters = await startMasters(3);
  });
  afterAll(() => masters.stop());

  it('is logged once with the reason, and once when it votes again', async () => {
    const [a, b] = masters.servers;
    const app = await start({ masters: [...masters.urls], restartGuard: false });
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    const reconnect = () => command(b!.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await reconnect();
    const stateOf = () => app.get(LockService).status().masters[1]?.state;
    await eventually(() => stateOf() === 'refused');
    // Further connections to the same replica log nothing.
    const before = await handshakesOf(b!.port);
    await eventually(async () => (await handshakesOf(b!.port)) >= before + 2);
    await command(b!.port, 'REPLICAOF', 'NO', 'ONE');
    await eventually(() => stateOf() === 'voting');
    expect(saidOf(b!.port)).toEqual([
      expect.stringMatching(/^warn master \S+ does not vote: it is a replica/),
      expect.stringMatching(/^log master \S+ votes again$/),
    ]);
  }, 60_000);

  async function handshakesOf(port: number): Promise<number> {
    const stats = String(await command(port, 'INFO', 'commandstats'));
    return Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }
});
