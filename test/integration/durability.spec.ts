import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Lock } from '../../lib/core/lock.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { StateUncertainError } from '../../lib/core/state/lock-state.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { allVote, MARKER, states } from '../support/guarded.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';
import { follow } from './support/replicas.js';

jest.setTimeout(60_000);

const SYNCED = ['--appendonly', 'yes', '--appendfsync', 'always', '--repl-diskless-sync-delay', '0'];
const TTL = 4_000;
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 250, restartGuard: true };

/** What a test has started, in order. */
const started: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of started.splice(0).reverse()) await end();
});

function use<T extends AsyncDisposable>(one: T): T {
  started.push(async () => one[Symbol.asyncDispose]());
  return one;
}

async function synced(count = 3): Promise<Masters> {
  return use(await startMasters(count, { args: SYNCED }));
}

async function server(options: Parameters<typeof RedisServer.start>[0]): Promise<RedisServer> {
  const one = await RedisServer.start(options);
  started.push(() => one.stop());
  return one;
}

async function connect(masters: Masters, options: RedlockOptions = {}): Promise<Contender> {
  const contender = await Contender.on(masters.urls, { ...OPTIONS, ...options }, {}, { within: 20_000 });
  return use(contender);
}

/** Whether the lock is still held when another process is granted it. */
async function isSharedWith(rival: Contender, lock: Lock): Promise<boolean> {
  const taken = await rival.acquire('held', TTL, { wait: 20_000 });
  const isShared = lock.isHeld;
  await taken.release();
  return isShared;
}

/** Waits until a process has met the data of a server, and has judged it. */
async function judged({ masters }: Contender, port: number): Promise<void> {
  const index = masters.findIndex(({ name }) => name.endsWith(`:${port}`));
  await eventually(async () => {
    const nonce = String(await command(port, 'HGET', MARKER, 'nonce'));
    return nonce === masters[index]?.identity().data;
  });
}

async function followDurably(replica: number, primary: number): Promise<void> {
  await follow(replica, primary);
  // Its append-only file is written anew with what it got.
  await eventually(async () => {
    const info = String(await command(replica, 'INFO', 'persistence'));
    return info.includes('aof_rewrite_in_progress:0') && info.includes('aof_rewrite_scheduled:0');
  });
}

// Protocol 8.8
describe('A lock on masters that are declared durable', () => {
  it('is held alone by processes that met the spares which voted at two addresses for a while', async () => {
    const masters = await synced();
    const [a, b] = masters.servers;
    const holder = await connect(masters, { durable: true });
    const rival = await connect(masters, { durable: true });
    await allVote(holder);
    await allVote(rival);
    const lock = await lockOnSpares([a!, b!], holder, [rival]);
    expect(await isSharedWith(rival, lock)).toBe(false);
  });

  it('is kept while all masters are restarted, one after the other and at once', async () => {
    const masters = await synced();
    const holder = await connect(masters, { durable: true });
    const lock = await holder.acquire('held', TTL, { extend: true });
    for (const each of masters.servers) {
      await each.restart();
      await allVote(holder);
    }
    await Promise.all(masters.servers.map((each) => each.restart()));
    await allVote(holder);
    await lock.extend();
    const rival = await connect(masters, { durable: true });
    await expect(rival.acquire('held', TTL, { wait: 0 })).rejects.toThrow(/held/);
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });

  it('waits for a promoted replica, whose primary need not have sent it everything', async () => {
    const masters = await synced();
    const [a] = masters.servers;
    const replica = await server({ args: SYNCED });
    const contender = await connect(masters, { durable: true });
    await allVote(contender);
    await followDurably(replica.port, a!.port);
    await eventually(async () => (await command(replica.port, 'EXISTS', MARKER)) === 1);
    await command(a!.port, 'REPLICAOF', '127.0.0.1', replica.port).catch(() => undefined);
    await command(replica.port, 'REPLICAOF', 'NO', 'ONE');
    await eventually(async () => String(await command(a!.port, 'ROLE')).includes('connected'));
    await command(a!.port, 'REPLICAOF', 'NO', 'ONE');
    await contender.acquire('other', TTL, { wait: 0 }).then((lock) => lock.release());
    await eventually(() => states(contender)[0] === 'quarantined');
    expect(contender.redlock.status().masters[0]).toMatchObject({ reason: expect.stringContaining('promoted') });
  });

  it.each([
    ['it has no append-only file', []],
    ['its appendfsync is everysec, not always', ['--appendonly', 'yes']],
  ])('is reported to be at risk by log and status where %s', async (flaw, args) => {
    const masters = use(await startMasters(3, { args }));
    const risks: string[] = [];
    const observer = { masterAtRisk: (_: string, risk: string) => void risks.push(risk) };
    const contender = use(await Contender.on(masters.urls, { ...OPTIONS, durable: true }, observer));
    await eventually(() => risks.length === 3);
    expect(new Set(risks)).toEqual(
      new Set([`it is declared durable, but ${flaw}: two holders are possible after a restart`]),
    );
    for (const { risk } of contender.redlock.status().masters) expect(risk).toBe(`it is declared durable, but ${flaw}`);
  });
});

describe('The state of a lock', () => {
  it.each([3, 5])(
    'is never certainly absent after %i masters lost it one by one, while a process lives that knew them',
    async (count) => {
      const masters = use(await startMasters(count));
      const witness = await connect(masters);
      await allVote(witness);
      await withLock(witness, (lock) => lock.state.set('page 1'));
      for (const each of masters.servers) {
        await each.restart();
        await eventually(async () => (await command(each.port, 'EXISTS', MARKER)) === 1);
      }
      await allVote(witness);
      const fresh = await connect(masters);
      for (const contender of [witness, fresh]) {
        await expect(withLock(contender, (lock) => lock.state.get())).rejects.toThrow(StateUncertainError);
      }
    },
  );

  // Protocol 10.2
  it('is never certainly absent after all masters lost it at once, although only new processes write their markers', async () => {
    const masters = use(await startMasters(3));
    const witness = await connect(masters);
    await allVote(witness);
    await withLock(witness, (lock) => lock.state.set('page 1'));
    await Promise.all(masters.servers.map((each) => each.kill()));
    const fresh = connect(masters);
    await Promise.all(masters.servers.map((each) => each.restart()));
    await expect(withLock(await fresh, (lock) => lock.state.get())).rejects.toThrow(StateUncertainError);
  });

  it('is certainly absent on new masters, which vote although six processes start one after the other', async () => {
    const masters = use(await startMasters(3));
    const began = performance.now();
    const processes: Promise<Contender>[] = [];
    for (let i = 0; i < 6; i++) {
      processes.push(connect(masters));
      await eventually(async () => (await command(masters.servers[i % 3]!.port, 'EXISTS', MARKER)) === 1);
    }
    const [first] = await Promise.all(processes);
    // A wait for the longest ttl takes four seconds.
    expect(performance.now() - began).toBeLessThan(TTL);
    expect(await withLock(first!, (lock) => lock.state.get())).toBeUndefined();
  });
});

/** Lets empty servers take the place of others until they vote, takes the lock from them, and brings the others back. */
async function lockOnSpares(
  originals: readonly RedisServer[],
  holder: Contender,
  rivals: readonly Contender[] = [],
  use: (lock: Lock) => Promise<unknown> = () => Promise.resolve(),
): Promise<Lock> {
  await Promise.all(originals.map((each) => each.kill()));
  const spares = await Promise.all(originals.map(({ port }) => server({ port, args: SYNCED })));
  for (const contender of [holder, ...rivals]) {
    for (const { port } of spares) await judged(contender, port);
    await allVote(contender);
  }
  const lock = await holder.acquire('held', TTL, { wait: 0 });
  await use(lock);
  await Promise.all(spares.map((each) => each.kill()));
  await Promise.all(originals.map((each) => each.restart()));
  return lock;
}

async function withLock<T>(contender: Contender, work: (lock: Lock) => Promise<T>): Promise<T> {
  await using lock = await contender.acquire('held', TTL, { extend: true, wait: 20_000 });
  return await work(lock);
}
