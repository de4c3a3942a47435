import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { QuorumUnavailableError } from '../../lib/core/errors.js';
import type { Lock } from '../../lib/core/lock.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { allVote, GUARDED, MARKER, states, TTL } from '../support/guarded.js';
import { follow } from './support/replicas.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const masters = sharedMasters(3);

describe('Three restarted masters', () => {
  const SHORT = 1_000;
  const LONG = 6_000;
  const SETTINGS = { ttl: SHORT, maxTtl: LONG, masterTimeout: 250, restartGuard: true };
  let contender: Contender;

  beforeEach(async () => {
    contender = await Contender.on(masters.urls, SETTINGS);
    await allVote(contender);
  });
  afterEach(() => contender.close());

  it('interrupt no holder when they restart one after the other', async () => {
    const held: Lock = await contender.acquire('held', SHORT, { extend: true });
    const over = new AbortController();
    let acquired = 0;
    const others = (async () => {
      while (!over.signal.aborted) {
        const lock = await contender.acquire(`other:${acquired}`, SHORT, { wait: '2s' });
        acquired++;
        await lock.release();
        await sleep(5);
      }
    })();
    for (const server of masters.servers) {
      await server.restart();
      await eventually(() => !states(contender).every((state) => state === 'voting'));
      await allVote(contender);
      // The extension has restored the key there.
      await eventually(async () => (await command(server.port, 'EXISTS', 'lock:held')) === 1);
      expect(held.isHeld).toBe(true);
    }
    over.abort();
    await others;
    expect(acquired).toBeGreaterThan(3);
    await held.release();
  });

  it('grant nothing for the largest ttl when two restart at once, report why, and then work again', async () => {
    const [a, b] = masters.servers;
    await Promise.all([a!.restart(), b!.restart()]);
    await eventually(() => states(contender).filter((state) => state === 'quarantined').length === 2);
    const error = await contender.acquire('x', SHORT, { wait: 0 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(QuorumUnavailableError);
    for (const { port } of [a!, b!]) {
      const reported = `127\\.0\\.0\\.1:${port}: does not vote for up to \\d+ ms more, it lost its data \\(see restartGuard\\)`;
      expect(String(error)).toMatch(new RegExp(reported));
    }
    expect(contender.redlock.status()).toMatchObject({ canVote: false, quorum: 2 });
    const lock = await contender.acquire('x', SHORT, { wait: '10s' });
    expect(lock.isHeld).toBe(true);
    expect(contender.redlock.status().canVote).toBe(true);
  });

  // Protocol 8.7
  it('carry out heals and releases while they do not vote, and still report held locks', async () => {
    const [a, b, c] = masters.servers;
    const lock = await contender.acquire('x', LONG, { extend: false });
    await a!.restart();
    await eventually(() => states(contender)[0] === 'quarantined');
    await eventually(async () => {
      await lock.extend();
      return (await command(a!.port, 'EXISTS', 'lock:x')) === 1;
    });
    await b!.kill();
    await c!.kill();
    await eventually(() => states(contender).join() === 'quarantined,down,down');
    const { masters: answers } = await contender.redlock.inspector.inspect('x');
    expect(answers[0]?.answer).toMatchObject({ kind: 'held' });
    await lock.release();
    await eventually(async () => (await command(a!.port, 'EXISTS', 'lock:x')) === 0);
  });

  it('do not grant a lock that is still held when all of them lose their data at once', async () => {
    const lock = await contender.acquire('held', LONG);
    await Promise.all(masters.servers.map((server) => server.restart()));
    await using rival = await Contender.on(masters.urls, { ...SETTINGS, ttl: LONG, maxTtl: LONG });
    const taken = await rival.acquire('held', LONG, { wait: '30s' });
    expect(lock.isHeld).toBe(false);
    await taken.release();
  });
});

describe('Masters without a marker', () => {
  // Protocol 8.6
  it('vote within 3 s of the first contact with the defaults, so that the first call succeeds', async () => {
    const reported: string[] = [];
    const observer = {
      masterQuarantined: (master: string, reason: string) => void reported.push(`${master} waits: ${reason}`),
      masterVotesAgain: (master: string) => void reported.push(`${master} votes`),
    };
    await using contender = await Contender.on(masters.urls, { restartGuard: true }, observer);
    const lock = await contender.acquire('x');
    expect(lock.isHeld).toBe(true);
    await eventually(() => reported.length === 6);
    const expected = masters.servers.flatMap(({ port }) => [
      `127.0.0.1:${port} waits: its data is new to all processes`,
      `127.0.0.1:${port} votes`,
    ]);
    expect(reported.sort()).toEqual(expected.sort());
    await using second = await Contender.on(masters.urls, { restartGuard: true });
    await expect(second.acquire('x', 1_000, { wait: 0 })).rejects.toThrow(/held/);
    await lock.release();
    await (await second.acquire('x', 1_000, { wait: 0 })).release();
  });
});

// Protocol 8.9
describe('The largest ttl in use', () => {
  const SMALL = { ttl: 1_000, maxTtl: 1_000, masterTimeout: 250, restartGuard: true };
  const LARGE = { ...SMALL, maxTtl: 6_000 };

  it('is announced on all masters before use, so that a process with shorter locks waits for it', async () => {
    const [a, b, c] = masters.servers;
    await using small = await Contender.on(masters.urls, SMALL);
    await allVote(small);
    await using apart = await TcpProxy.to(c!.port);
    await using large = await Contender.on([a!.url, b!.url, apart.url], LARGE);
    await allVote(large);
    await (await large.acquire('announced', 6_000)).release();
    apart.refuse = true;
    apart.reset();
    await eventually(() => states(large)[2] === 'down');
    const lock = await large.acquire('x', 6_000, { wait: 0 });
    expect(lock.remaining()).toBeGreaterThan(1_000);
    await a!.restart();
    const taken = await small.acquire('x', 1_000, { wait: '20s' });
    expect(lock.isHeld).toBe(false);
    await taken.release();
  });
});

it('A server that attaches its first replica keeps its vote, because its data is the same under a new replication id', async () => {
  await using masters = await startMasters(3);
  const [a] = masters.servers;
  await using replica = await startMasters(1);
  const masterQuarantined = jest.fn();
  await using contender = await Contender.on(masters.urls, GUARDED);
  await allVote(contender);
  await using watching = await Contender.on(masters.urls, GUARDED, { masterQuarantined });
  await allVote(watching);
  const before = String(await command(a!.port, 'HGET', MARKER, 'replid'));
  await follow(replica.servers[0]!.port, a!.port);
  await eventually(async () => {
    await (await watching.acquire('x', TTL, { wait: '5s' })).release();
    return String(await command(a!.port, 'HGET', MARKER, 'replid')) !== before;
  });
  await allVote(watching);
  expect(masterQuarantined).not.toHaveBeenCalled();
});
