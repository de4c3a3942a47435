import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { hashSlotOf } from '../../lib/redis/cluster/cluster-map.js';
import { masterFrom } from '../../lib/redis/master-source.js';
import { acquiring, ask } from '../support/ask.js';
import { startCluster, type TestCluster } from '../support/cluster.js';
import { contextOf } from '../support/context.js';

jest.setTimeout(120_000);

let cluster: TestCluster;
let client: Redis;

beforeAll(async () => {
  cluster = await startCluster({ primaries: 1, replicas: 0 });
  client = new Redis(cluster.urls[0]!);
});

afterAll(async () => {
  client.disconnect();
  await cluster[Symbol.asyncDispose]();
});

describe('The slot of a key', () => {
  const slotsOnServer = (keys: readonly string[]): Promise<number[]> =>
    Promise.all(keys.map((key) => client.cluster('KEYSLOT', key)));

  it('is what the server says of keys at random', async () => {
    const part = fc.oneof(
      fc.constantFrom('{', '}', '{}', ':', '\0', 'é', '€', '\ud800', '\udc00'),
      fc.string(),
      fc.string({ unit: 'binary' }),
    );
    const key = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(fc.array(key, { minLength: 50, maxLength: 50 }), async (keys) => {
        expect(keys.map(hashSlotOf)).toEqual(await slotsOnServer(keys));
      }),
      { numRuns: 20 },
    );
  });
});

it('A cluster whose service forbids CLUSTER NODES grants locks', async () => {
  await client.acl('SETUSER', 'default', '-cluster|nodes');
  const source = `${cluster.urls[0]!.replace('redis:', 'redis+cluster:')}?clusterNodeTimeout=1000`;
  const master = masterFrom('masters[0]', source, contextOf());
  await master.connect();
  expect(await ask(master, acquiring(['a'], 'token'))).toMatchObject({ kind: 'granted' });
  await master.close();
});
