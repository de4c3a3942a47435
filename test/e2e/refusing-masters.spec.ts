import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type LockObserver, LockService, RedlockModule } from 'nestjs-redlock';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, closeAll, logs } from './support/applications.js';

jest.setTimeout(90_000);

afterEach(closeAll);

const masters = sharedMasters(3);

/** No round trip is longer, even on a busy machine. */
const PATIENT = { masterTimeout: '2s', restartGuard: false } as const;

/** The lines of the library after the boot, with `a`, `b` and `c` for the masters. */
function lines(): string[] {
  const names = new Map(masters.servers.map(({ port }, index) => [`127.0.0.1:${port}`, 'abc'[index]!]));
  const begin = logs.findIndex((line) => line.includes('locks are available'));
  const said = logs.slice(begin + 1).filter((line) => !line.includes('dependencies initialized'));
  return said.map((line) => line.replace(/127\.0\.0\.1:\d+/g, (address) => names.get(address)!));
}

/** The application, once it has reported that locks are available. */
async function start(observer: LockObserver = {}): Promise<LockService> {
  const app = await boot({
    imports: [RedlockModule.forRoot({ masters: [...masters.urls], observers: [observer], ...PATIENT })],
  });
  await eventually(() => logs.some((line) => line.includes('locks are available')));
  return app.get(LockService);
}

describe('An application whose masters refuse every write', () => {
  const memoryOf = (server: { readonly port: number }, bytes: string) =>
    command(server.port, 'CONFIG', 'SET', 'maxmemory', bytes);

  it('notices it and its end by itself, and logs each change once', async () => {
    const events: string[] = [];
    const locks = await start({
      masterRefused: () => events.push('refused'),
      masterVotesAgain: () => events.push('votes again'),
      quorumLost: () => events.push('quorum lost'),
      quorumRestored: () => events.push('quorum restored'),
    });
    const [a, b] = masters.servers;
    await memoryOf(a!, '1');
    await eventually(() => locks.status().masters[0]?.state === 'refused', 30_000);
    await memoryOf(b!, '1');
    await eventually(() => !locks.status().canVote, 30_000);
    expect(lines()).toEqual([
      expect.stringMatching('^warn master a does not vote: OOM '),
      expect.stringMatching('^warn master b does not vote: OOM '),
      expect.stringMatching(
        '^error no lock can be taken: 1 of 3 masters vote \\(a: refused, OOM .*; b: refused, OOM .*\\)$',
      ),
    ]);
    await memoryOf(b!, '0');
    await eventually(() => locks.status().canVote, 30_000);
    expect(lines().slice(3)).toEqual(['log master b votes again', 'log locks can be taken again: 2 of 3 masters vote']);
    expect(events).toEqual(['refused', 'refused', 'quorum lost', 'votes again', 'quorum restored']);
  });

  it('notices it when an acquisition fails, and a probe beside releases does not hide it', async () => {
    const request = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const noteContext = () => contexts.push(request.getStore());
    const locks = await start({ masterRefused: noteContext, quorumLost: noteContext });
    const held = await Promise.all(['x', 'y', 'z'].map((key) => locks.acquire(key)));
    for (const server of masters.servers) await memoryOf(server, '1');
    await expect(request.run('a request', () => locks.acquire('order', { wait: 0 }))).rejects.toThrow('OOM');
    // What concerns the masters is reported in the context of the application.
    expect(new Set(contexts)).toEqual(new Set([undefined]));
    expect(locks.status().canVote).toBe(false);
    const releases = held.map((lock) => lock.release());
    await expect(locks.probe()).resolves.toMatchObject({ canVote: false });
    await Promise.all(releases);
    expect(lines().filter((line) => line.startsWith('error'))).toHaveLength(1);
    for (const server of masters.servers) await memoryOf(server, '0');
    await expect(locks.probe()).resolves.toMatchObject({ canVote: true });
    expect(locks.status().canVote).toBe(true);
  });
});

it('A lock that two of three masters refuse to extend is lost with what they said, in the error and in the log, with the restart guard', async () => {
  const app = await boot({
    imports: [RedlockModule.forRoot({ masters: [...masters.urls], masterTimeout: '500ms', ttl: '2s' })],
  });
  const lock = await app.get(LockService).acquire('held', { wait: '20s', extend: true });
  const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  for (const { port } of masters.servers.slice(1)) await command(port, 'REPLICAOF', '127.0.0.1', '1');
  await lost;
  const [a, b, c] = masters.servers.map(({ port }) => `127.0.0.1:${port}`);
  const said = new RegExp(`${a}: [^;]*; ${b}: READONLY [^;]*; ${c}: READONLY [^;]*\\)`);
  expect(String(lock.signal.reason)).toMatch(said);
  const lines = logs.filter((line) => /the lock on "held"/.test(line));
  expect(lines).toEqual([
    expect.stringMatching(/^warn the lock on "held" is in danger/),
    expect.stringMatching(/^warn lost the lock on "held"/),
  ]);
  for (const line of lines) expect(line).toMatch(said);
});
