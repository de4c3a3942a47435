import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { TTL } from '../src/config.js';
import { type Entry, Ledger } from '../src/ledger.js';
import { Instance } from './instance.js';

const masters: RedisServer[] = [];
const instances: Instance[] = [];
let store: string;

beforeAll(async () => {
  for (let i = 0; i < 3; i++) masters.push(await RedisServer.start());
}, 60_000);
afterAll(async () => {
  await Promise.all(masters.map((master) => master.stop()));
});

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), 'rolling-deployment-'));
});
afterEach(async () => {
  for (const instance of instances) instance.kill('SIGKILL');
  await Promise.all(instances.splice(0).map((instance) => instance.ended));
  rmSync(store, { recursive: true, force: true });
});

function start(env: NodeJS.ProcessEnv = {}): Instance {
  const urls = masters.map(({ url }) => url).join(',');
  const instance = Instance.start({ REDLOCK_MASTERS: urls, STORE: store, BATCH_TIME: '300', ...env });
  instances.push(instance);
  return instance;
}

/** Starts an instance that works and one that waits for it to leave, as in the middle of a deployment. */
async function deploy(env: NodeJS.ProcessEnv = {}): Promise<[old: Instance, fresh: Instance]> {
  const old = start(env);
  await old.says('begun');
  const fresh = start();
  await fresh.says('waits for the import');
  return [old, fresh];
}

const entriesOf = (instance: Instance): Entry[] =>
  new Ledger(store).entries().filter((entry) => entry.instance === instance.pid);

function done(instance?: Instance): number[] {
  const entries = instance ? entriesOf(instance) : new Ledger(store).entries();
  return entries.filter(({ event }) => event === 'done').map(({ batch }) => batch);
}

/** Batches that began while another one was running. */
function overlaps(): Entry[] {
  let running = 0;
  return new Ledger(store).entries().filter(({ event }) => {
    running += event === 'begun' ? 1 : -1;
    return running > 1;
  });
}

const oneToN = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

describe('An instance that receives SIGTERM', () => {
  it('ends its batch, and the next instance continues at once', async () => {
    const [old, fresh] = await deploy();
    await old.says('begun');
    const takenOver = fresh.says('done');
    old.kill('SIGTERM');
    await expect(old.ended).resolves.toEqual([0, null]);
    await takenOver;

    // The instance has ended every batch that it began, and no other batch began meanwhile.
    expect(entriesOf(old).filter(({ event }) => event === 'begun')).toHaveLength(done(old).length);
    expect(overlaps()).toEqual([]);
    expect(done()).toEqual(oneToN(done().length));
    const lastDone = entriesOf(old).at(-1)!;
    const handOver = entriesOf(fresh)[0]!.at - lastDone.at;
    expect(lastDone.event).toBe('done');
    // Waiting for the lock to expire would have taken longer, because it was extended less than half a ttl ago.
    expect(handOver).toBeLessThan(TTL / 2);
  }, 60_000);

  it('aborts its batch by the signal of the lock when the batch takes longer than the shutdown may', async () => {
    const [old, fresh] = await deploy({ BATCH_TIME: '3600000', DRAIN_TIMEOUT: '200ms' });
    const takenOver = fresh.says('done');
    old.kill('SIGTERM');
    await expect(old.ended).resolves.toEqual([0, null]);
    await takenOver;

    expect(entriesOf(old).map(({ event, batch }) => `${event} ${batch}`)).toEqual(['begun 1', 'stopped 1']);
    expect(done(fresh)[0]).toBe(1);
    expect(done()).toEqual(oneToN(done().length));
  }, 60_000);

  it('leaves at once if it only waited, and does not affect other instances', async () => {
    const [old, fresh] = await deploy();
    fresh.kill('SIGTERM');
    await expect(fresh.ended).resolves.toEqual([0, null]);
    await old.says('done');
    expect(entriesOf(fresh)).toEqual([]);
    expect(done()).toEqual(oneToN(done().length));
  }, 60_000);
});

describe('An instance that is killed', () => {
  it('blocks the import until its lock has expired, and its batch starts again', async () => {
    const [old, fresh] = await deploy({ BATCH_TIME: '3600000' });
    const takenOver = fresh.says('done');
    const killedAt = Date.now();
    old.kill('SIGKILL');
    await expect(old.ended).resolves.toEqual([null, 'SIGKILL']);
    await takenOver;

    const [first] = entriesOf(fresh);
    expect(first).toMatchObject({ event: 'begun', batch: 1 });
    const takeOver = first!.at - killedAt;
    // The remaining time of the lock is between zero and one ttl. The rest of the limit allows for a busy machine.
    expect(takeOver).toBeGreaterThan(TTL / 4);
    expect(takeOver).toBeLessThan(TTL * 2);
  }, 60_000);
});

describe('Without locks', () => {
  it('two instances import the same batch, so the tests above would detect a missing lock', async () => {
    const old = start({ LOCKS: 'off' });
    await old.says('begun');
    const fresh = start({ LOCKS: 'off' });
    await fresh.says('done');
    expect(overlaps()).not.toEqual([]);
  }, 60_000);
});
