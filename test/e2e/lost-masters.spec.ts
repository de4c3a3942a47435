import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LockObserver, LockService, RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from '../integration/support/shared-masters.js';
import { boot, closeAll, logs } from './support/applications.js';

jest.setTimeout(90_000);

const masters = sharedMasters(3);

/** Allows for a busy machine, and is still reached within the tests. */
const OPTIONS = { ttl: '3s', masterTimeout: '700ms' } as const;

/** The lines of the library, with `a`, `b` and `c` for the masters, `N` for milliseconds and `T` for a time of day. */
function lines(): string[] {
  const names = new Map(masters.servers.map(({ port }, index) => [`127.0.0.1:${port}`, 'abc'[index]!]));
  return logs
    .filter((line) => !line.includes('dependencies initialized'))
    .map((line) =>
      line
        .replace(/127\.0\.0\.1:\d+/g, (address) => names.get(address)!)
        .replace(/\d+ ms/g, 'N ms')
        .replace(/\d\d:\d\d:\d\d \(in \d+ s\)/, 'T')
        .replace(/waits \d+\.\d s|waits \d+ ms/g, 'waits')
        // Masters that come back together are counted together on a busy machine.
        .replace(/(locks (?:are available|can be taken again)): [23] of 3/, '$1: a quorum of 3')
        // What a connection reports as it breaks depends on the moment.
        .replace(/read ECONNRESET|write EPIPE|the connection broke[a-z ]*/g, 'broken')
        .replace(/connect ECONNREFUSED [abc](: start it, or correct its address)?/g, 'broken'),
    );
}

/** The lines after the present ones, once there are `count`. */
async function nextLines(from: number, count: number): Promise<string[]> {
  const next = (): string[] => lines().slice(from);
  await eventually(() => next().length >= count, 30_000).catch(() => undefined);
  return next();
}

/** The application, once it has logged this many lines, the last of which says that locks are available. */
async function start(options: Partial<RedlockModuleOptions> = {}, count = 6): Promise<LockService> {
  const app = await boot({ imports: [RedlockModule.forRoot({ masters: [...masters.urls], ...OPTIONS, ...options })] });
  const locks = app.get(LockService);
  if (!options.lazyConnect) await nextLines(0, count);
  return locks;
}

/** Takes locks all the time until it is disposed, whether that succeeds or not. */
function load(locks: LockService): AsyncDisposable {
  let isOver = false;
  const take = async (): Promise<void> => {
    for (let call = 0; !isOver; call++) {
      await locks.withLock(`load:${call}`, { wait: 0 }, () => undefined).catch(() => undefined);
      await sleep(5);
    }
  };
  const taking = take();
  return {
    [Symbol.asyncDispose]: () => {
      isOver = true;
      return taking;
    },
  };
}

it('An application whose masters are killed under load logs each lost connection, the lost quorum and lock, and their return, once and in order', async () => {
  const events: string[] = [];
  const observer: LockObserver = {
    masterLost: () => events.push('lost'),
    masterFound: () => events.push('found'),
    masterQuarantined: () => events.push('quarantined'),
    masterVotesAgain: () => events.push('votes again'),
    quorumLost: (voting, all, { canVote }) => events.push(`quorum lost: ${voting} of ${all}, ${canVote}`),
    quorumRestored: (voting, all, { canVote }) => events.push(`quorum restored: ${voting} of ${all}, ${canVote}`),
    lockInDanger: (resources) => events.push(`in danger: ${resources.join()}`),
    lockLost: ({ cause }) => events.push(cause),
    stopped: () => events.push('stopped'),
  };
  const locks = await start({ observers: [observer] });
  events.length = 0;
  const from = lines().length;
  const [a, b] = masters.servers;
  const lost = '(a: unreachable, broken; b: unreachable, broken; c: granted)';
  await using _ = load(locks);
  await locks.acquire('held', { extend: true });

  await a!.kill();
  expect(await nextLines(from, 1)).toEqual(['warn lost the connection to a: broken']);
  await b!.kill();
  expect(await nextLines(from + 1, 4)).toEqual([
    'warn lost the connection to b: broken',
    'error no lock can be taken: 1 of 3 masters vote (a: down, broken; b: down, broken)',
    'warn the lock on "held" is in danger: it is lost in N ms unless a quorum of masters agrees to extend it ' + lost,
    `warn lost the lock on "held": its validity ended before a quorum of masters agreed to extend it ${lost}`,
  ]);
  await a!.restart();
  expect(await nextLines(from + 5, 5)).toEqual([
    'log connected to a again',
    'warn master a waits after a restart before it votes: it may have lost locks that are held (see restartGuard)',
    'warn locks can be taken from T: 1 of 3 masters vote (a: waits after a restart; b: down, broken)',
    'log master a votes again',
    'log locks can be taken again: a quorum of 3 masters vote',
  ]);
  expect(events).toEqual([
    ...['lost', 'lost', 'quorum lost: 1 of 3, false', 'in danger: held', 'expired'],
    ...['found', 'quarantined', 'votes again', 'quorum restored: 2 of 3, true'],
  ]);
  await closeAll();
  expect(events.slice(9)).toEqual(['stopped']);
});

it('An application whose masters freeze under load logs silent masters, the lost quorum and lock, and their return, once and in order', async () => {
  const locks = await start();
  const from = lines().length;
  const frozen = masters.servers.slice(0, 2);
  const silence = 'silent, it leaves requests unanswered';
  await using _ = load(locks);
  await locks.acquire('held', { extend: true });

  for (const server of frozen) server.pause();
  const said = await nextLines(from, 7);
  const ofBoth = (line: (name: string) => string): string[] => ['a', 'b'].map(line);
  expect(said.slice(0, 2).sort()).toEqual(
    ofBoth((name) => `warn master ${name} has stopped answering: it is only probed`),
  );
  expect(said[2]).toBe(`error no lock can be taken: 1 of 3 masters vote (a: ${silence}; b: ${silence})`);
  // Their connections may be half-open.
  const aboutLock = said.slice(3).filter((line) => line.includes('"held"'));
  expect(
    said
      .slice(3)
      .filter((line) => !aboutLock.includes(line))
      .sort(),
  ).toEqual(ofBoth((name) => `warn lost the connection to ${name}: no answer for long, connecting anew`));
  expect(aboutLock).toEqual([
    expect.stringMatching(/^warn the lock on "held" is in danger: .* \(a: [a-z ,]+; b: [a-z ,]+; c: granted\)$/),
    expect.stringMatching(
      /^warn lost the lock on "held": .* \(a: silent, not asked; b: silent, not asked; c: granted\)$/,
    ),
  ]);
  for (const server of frozen) server.resume();
  expect((await nextLines(from + 7, 5)).sort()).toEqual([
    ...ofBoth((name) => `log connected to ${name} again`),
    'log locks can be taken again: a quorum of 3 masters vote',
    ...ofBoth((name) => `log master ${name} answers again`),
  ]);
});

it('An application that does not wait for its masters logs that no lock can be taken, each master that comes up, and that locks are available', async () => {
  for (const server of masters.servers) await server.kill();
  await start({ lazyConnect: true });
  const down = (name: string): string => `${name}: down, broken`;
  expect(await nextLines(0, 2)).toEqual([
    'log locks need 2 of 3 masters: a, b, c; ttl N ms',
    `error no lock can be taken: 0 of 3 masters vote (${['a', 'b', 'c'].map(down).join('; ')})`,
  ]);
  for (const server of masters.servers) await server.restart();
  const names = ['a', 'b', 'c'];
  const said = await nextLines(2, 11);
  const waits = 'waits because it is new';
  const end = (line: string): boolean => line.startsWith('warn locks can be taken from T: 0 of 3 masters vote');
  expect(said.filter((line) => !end(line)).sort()).toEqual(
    [
      ...names.flatMap((name) => [
        `log connected to ${name}`,
        `warn master ${name} ${waits} before it votes: it may have lost locks that are held (see restartGuard)`,
        `log master ${name} votes again`,
      ]),
      'log locks are available: a quorum of 3 masters vote',
    ].sort(),
  );
  // As soon as a majority is connected.
  expect(said.filter(end)).toEqual([expect.stringContaining(waits)]);
  expect(said.indexOf('log locks are available: a quorum of 3 masters vote')).toBeGreaterThanOrEqual(6);
});

describe('An application that closes', () => {
  it('logs nothing when it closes its connections itself', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: [...masters.urls], ...OPTIONS })] });
    await app.close();
    expect(logs.join()).toContain('locks need 2 of 3 masters');
    expect(logs.join()).not.toMatch(/lost the connection|no lock can be taken|connected to/);
  });

  it('does not report the quorum of masters whose connections it has given up', async () => {
    for (const server of masters.servers) server.pause();
    const app = await boot({
      imports: [RedlockModule.forRoot({ masters: [...masters.urls], ...OPTIONS, lazyConnect: true })],
    });
    await app.close();
    expect(lines()).toEqual(['log locks need 2 of 3 masters: a, b, c; ttl N ms']);
  });
});

describe('An application whose masters refuse every write', () => {
  const memoryOf = (server: { readonly port: number }, bytes: string) =>
    command(server.port, 'CONFIG', 'SET', 'maxmemory', bytes);

  /** No round trip is longer, even on a busy machine. */
  const PATIENT = { ttl: '10s', masterTimeout: '2s', restartGuard: false } as const;

  it('notices it and its end by itself, and logs each change once', async () => {
    const events: string[] = [];
    const observer: LockObserver = {
      masterRefused: () => events.push('refused'),
      masterVotesAgain: () => events.push('votes again'),
      quorumLost: () => events.push('quorum lost'),
      quorumRestored: () => events.push('quorum restored'),
    };
    const locks = await start({ ...PATIENT, observers: [observer] }, 2);
    const from = lines().length;
    const [a, b] = masters.servers;
    await memoryOf(a!, '1');
    await eventually(() => locks.status().masters[0]?.state === 'refused', 30_000);
    await memoryOf(b!, '1');
    await eventually(() => !locks.status().canVote, 30_000);
    expect(lines().slice(from)).toEqual([
      expect.stringMatching('^warn master a does not vote: OOM '),
      expect.stringMatching('^warn master b does not vote: OOM '),
      expect.stringMatching(
        '^error no lock can be taken: 1 of 3 masters vote \\(a: refused, OOM .*; b: refused, OOM .*\\)$',
      ),
    ]);
    await memoryOf(b!, '0');
    await eventually(() => locks.status().canVote, 30_000);
    expect(lines().slice(from + 3)).toEqual([
      'log master b votes again',
      'log locks can be taken again: a quorum of 3 masters vote',
    ]);
    expect(events).toEqual(['refused', 'refused', 'quorum lost', 'votes again', 'quorum restored']);
  });

  it('notices it when an acquisition fails, and a probe beside releases does not hide it', async () => {
    const request = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const noteContext = () => contexts.push(request.getStore());
    const observer = { masterRefused: noteContext, quorumLost: noteContext };
    const locks = await start({ ...PATIENT, observers: [observer] }, 2);
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
  const lock = await (await start()).acquire('held', { extend: true });
  const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  for (const { port } of masters.servers.slice(1)) await command(port, 'REPLICAOF', '127.0.0.1', '1');
  await lost;
  const [a, b, c] = masters.servers.map(({ port }) => `127.0.0.1:${port}`);
  const said = new RegExp(`${a}: [^;]*; ${b}: READONLY [^;]*; ${c}: READONLY [^;]*\\)`);
  expect(String(lock.signal.reason)).toMatch(said);
  const about = logs.filter((line) => /the lock on "held"/.test(line));
  expect(about).toEqual([
    expect.stringMatching(/^warn the lock on "held" is in danger/),
    expect.stringMatching(/^warn lost the lock on "held"/),
  ]);
  for (const line of about) expect(line).toMatch(said);
});
