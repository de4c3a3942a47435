import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { MasterRequest } from '../../lib/core/master.interface.js';
import { ask, extending, picking, releasing, sharing } from '../support/ask.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const TTL = 300;
const share = sharing(['lock:k'], 'mine', { ttl: TTL });
const pick = picking(['lock:p'], 'mine', { ttl: TTL });
const prolong = { ...extending(['lock:k'], 'mine', TTL), isShared: true };
const want: MasterRequest = { op: 'want', keys: ['lock:k'], barriers: ['lock:b'], waiter: 'me', waited: 0 };

describe('The restart guard', () => {
  const masters = sharedMasters(1);

  it('does not send requests for shared keys and permits to a master that must not vote', async () => {
    await using contender = await Contender.on(masters.urls, { ttl: '10m', maxTtl: '10m', restartGuard: true });
    const [master] = contender.masters;
    await eventually(() => master!.identity().quarantine !== undefined);
    for (const request of [share, pick]) {
      expect(await ask(master!, request)).toMatchObject({ kind: 'quarantined', sent: false });
    }
    // A holder from before the loss may keep its place, but this is no vote. A barrier does not depend on votes.
    await eventually(async () => (await ask(master!, prolong)).kind === 'quarantined');
    expect(await ask(master!, { ...releasing(['lock:k'], 'mine'), isShared: true })).toEqual({ kind: 'granted' });
    expect(await ask(master!, want)).toEqual({ kind: 'granted' });
    expect(await typesOn()).toEqual({ 'lock:b': 'zset' });
  }, 30_000);

  it.each([share, pick, prolong])(
    'lets no master without its marker grant shared keys or permits ($op)',
    async (request) => {
      await using contender = await Contender.on(masters.urls, { ttl: TTL, maxTtl: TTL, restartGuard: true });
      const [master] = contender.masters;
      await eventually(() => master!.identity().quarantine === undefined);
      // A grant counts only for a ttl that the master knows.
      await (await contender.acquire('another', TTL)).release();
      expect(await ask(master!, request)).toMatchObject({ kind: 'granted' });
      await using client = disposable(new Redis(masters.servers[0]!.port));
      await client.flushall();
      const answer = await ask(master!, request);
      expect(answer.kind).toMatch(/^(?:refused|quarantined)$/);
    },
    30_000,
  );

  async function typesOn(): Promise<Record<string, string>> {
    await using client = disposable(new Redis(masters.servers[0]!.port));
    const keys = (await client.keys('*')).filter((key) => !key.includes('\0'));
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await client.type(key)] as const)));
  }
});

function disposable(redis: Redis): Redis & AsyncDisposable {
  return Object.assign(redis, { [Symbol.asyncDispose]: async () => redis.disconnect() });
}
