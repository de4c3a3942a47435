import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const masters = sharedMasters(3);

/** Longer than any reconnect, even on a busy machine. */
const PATIENT = { ttl: '30s', masterTimeout: '5s', restartGuard: false } as const;

/**
 * Ends the connections for requests, as an idle time-out of the servers does. The servers answer no new connection before
 * `call` has begun.
 */
async function afterIdling<T>({ redlock }: Contender, call: () => Promise<T>): Promise<T> {
  const { servers } = masters;
  const lose = async (server: (typeof servers)[number]): Promise<void> => {
    await command(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    server.pause();
  };
  const isLost = (): boolean => redlock.masters.status().masters.every(({ state }) => state === 'down');
  for (let attempt = 0; !isLost(); attempt++) {
    if (attempt === 50) throw new Error('connections were open again before their servers stopped answering');
    await Promise.all(servers.map(lose));
    for (let look = 0; look < 20 && !isLost(); look++) await sleep(5);
    if (isLost()) break;
    for (const server of servers) server.resume();
  }
  const called = call();
  called.catch(() => undefined);
  await sleep(10);
  for (const server of servers) server.resume();
  return called;
}

describe('On connections that the servers have closed because they were idle', () => {
  it.each<[string, (contender: Contender) => Promise<unknown>]>([
    [
      'a call that does not wait',
      (contender) => contender.acquire('a', '30s', { wait: 0 }).then((lock) => lock.release()),
    ],
    ['a call that waits', (contender) => contender.acquire('a', '30s', { wait: '10s' }).then((lock) => lock.release())],
    ['a probe', async ({ redlock }) => expect(await redlock.masters.probe()).toMatchObject({ canVote: true })],
  ])('%s succeeds', async (_, call) => {
    await using contender = await Contender.on(masters.urls, PATIENT);
    for (let count = 0; count < 3; count++) await afterIdling(contender, () => call(contender));
  });

  it('an extension succeeds, and a release says what the masters reply', async () => {
    await using contender = await Contender.on(masters.urls, PATIENT);
    const lock = await contender.acquire('a', '30s');
    await afterIdling(contender, () => lock.extend('20s'));
    for (const { port } of masters.servers) await command(port, 'DEL', 'lock:a');
    await afterIdling(contender, () => lock.release());
    expect(lock.loss?.cause).toBe('gone');
  });

  it('calls do not wait if the servers are gone, but for the first attempt', async () => {
    let lost = 0;
    await using contender = await Contender.on(masters.urls, PATIENT, { masterLost: () => (lost += 1) });
    await Promise.all(masters.servers.map((server) => server.kill()));
    const began = performance.now();
    for (let count = 0; count < 20; count++) {
      await expect(contender.acquire('a', '30s', { wait: 0 })).rejects.toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    }
    // One attempt that a port refuses; twenty calls that waited for masterTimeout would take 100 s.
    expect(performance.now() - began).toBeLessThan(5_000);
    await eventually(() => lost === 3);
    await Promise.all(masters.servers.map((server) => server.restart()));
    await eventually(() => contender.redlock.masters.status().canVote);
  });
});
