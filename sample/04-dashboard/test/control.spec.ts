import { describe, expect, it } from '@jest/globals';
import { ask, isAlive, look, serve } from './program.js';

describe('The controls', () => {
  it('refuse requests from other pages, whatever host name they use', async () => {
    const url = await serve();
    const { host, port } = new URL(url);
    const kill = `${url}/masters/1/kill`;
    const pid = (await look(url)).masters[0]!.pid!;
    for (const headers of [
      { host },
      { host, origin: 'null' },
      { host, origin: 'https://elsewhere.example' },
      { host, origin: `http://127.0.0.1:${Number(port) + 1}` },
      { host: `elsewhere.example:${port}`, origin: `http://elsewhere.example:${port}` },
    ]) {
      expect(await ask('POST', kill, headers)).toBe(403);
    }
    expect(await ask('GET', `${url}/events`, { host: `elsewhere.example:${port}` })).toBe(403);
    expect(isAlive(pid)).toBe(true);

    expect(await ask('POST', kill, { host, origin: url })).toBe(204);
    expect(isAlive(pid)).toBe(false);
    expect(await ask('POST', kill, { host, origin: url })).toBe(409);
    expect(await ask('POST', `${url}/masters/4/kill`, { host, origin: url })).toBe(404);
    expect(await ask('POST', `${url}/masters/1/flush`, { host, origin: url })).toBe(404);
  }, 120_000);
});
