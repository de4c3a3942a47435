import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import {
  ask,
  ENSURE_CHROMIUM,
  isAlive,
  look,
  processesIn,
  PROGRAM,
  program,
  runWithout,
  serve,
  untilGone,
} from './program.js';

describe('The program', () => {
  it('leaves nothing behind when it receives a signal to end while a page is open', async () => {
    const url = await serve();
    const pids = processesIn(await look(url));
    const stream = await fetch(`${url}/events`);
    const ended = once(program!, 'exit');
    program!.kill('SIGTERM');
    // Waits for the end of the stream: the server does not wait for the page to close.
    await Promise.all([stream.text(), ended]);
    expect(pids).toHaveLength(6);
    expect(pids.filter(isAlive)).toEqual([]);
  }, 120_000);

  it('leaves nothing behind when `npm start` receives a signal to end', async () => {
    const pids = processesIn(await look(await serve('npm', ['start'])));
    program!.kill('SIGTERM');
    await untilGone(pids);
    expect(pids).toHaveLength(6);
  }, 120_000);

  it('leaves nothing behind when it is killed, not even paused processes', async () => {
    const url = await serve();
    const headers = { host: new URL(url).host, origin: url };
    expect(await ask('POST', `${url}/masters/1/pause`, headers)).toBe(204);
    expect(await ask('POST', `${url}/instances/A/pause`, headers)).toBe(204);
    const pids = processesIn(await look(url));
    program!.kill('SIGKILL');
    await untilGone(pids);
    expect(pids).toHaveLength(6);
  }, 120_000);

  it('names what is missing if there is no Redis server', async () => {
    const { code, said } = await runWithout(PROGRAM);
    expect(said).toMatch(/No redis-server or valkey-server on this machine. Install it/);
    expect(code).toBe(1);
  }, 120_000);
});

describe('The tests', () => {
  it('name what is missing if there is no browser', async () => {
    const { code, said } = await runWithout(ENSURE_CHROMIUM);
    expect(said).toMatch(/No Chromium on this machine. Install it/);
    expect(code).toBe(1);
  }, 120_000);
});
