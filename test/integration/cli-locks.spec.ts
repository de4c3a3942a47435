import { describe, expect, it, jest } from '@jest/globals';
import { endRecord, jobResource, startRecord } from '../../lib/operate/job-record.js';
import { Keyspace } from '../../lib/settings/keyspace.js';
import type { Lock } from '../../lib/locks/lock.js';
import { cli, cliProcess, type Ended, on, startCli } from '../support/cli.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { leftovers } from '../support/leftovers.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(90_000);

interface Listing {
  readonly locks: readonly { readonly resource: string; readonly state: string; readonly heldOn: readonly string[] }[];
  readonly unasked: readonly unknown[];
}

/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
const masters = sharedMasters(3);
/** Those of the tests for which one master is enough. */
const first = () => masters.urls.slice(0, 1);

/** The command line on some masters. Its time limit is for busy machines, unless one is given. */
function commandLineOn(urls: () => readonly string[]) {
  const run = (...args: readonly string[]): Promise<Ended> =>
    cli([...args, ...on(urls()), ...(args.includes('--timeout') ? [] : PATIENTLY)]);
  const json = async <T = unknown>(...args: readonly string[]): Promise<T> =>
    JSON.parse((await run(...args, '--json')).stdout) as T;
  return { run, json };
}

const { run, json } = commandLineOn(() => masters.urls);
const alone = commandLineOn(first);

describe('inspect', () => {
  it('shows what each master reports about a lock, and leaves nothing behind', async () => {
    await using contender = await Contender.on(masters.urls);
    const lock = await contender.acquire('order:1', '30s');
    const held = await run('inspect', 'order:1');
    expect(held).toMatchObject({ status: 0, stderr: '' });
    expect(held.stdout).toMatch(/"order:1" is held, for \d.* unless it is extended \(held on 3 of 3 masters/);
    expect(held.stdout.match(/held, \d+\.\d s left/g)).toHaveLength(3);
    expect(await json('inspect', 'order:1')).toMatchObject({ resource: 'order:1', state: 'held' });

    await lock.release();
    const free = await run('inspect', 'order:1');
    expect(free).toMatchObject({ status: 0, stdout: expect.stringContaining('"order:1" is free') });
    for (const { port } of masters.servers) expect(await leftovers(port)).toEqual([]);
    const { state, masters: replies } = await json<{ state: string; masters: object[] }>('inspect', 'order:1');
    expect([state, replies]).toEqual([
      'free',
      masters.servers.map(({ port }) => ({ master: `127.0.0.1:${port}`, answer: { kind: 'free' } })),
    ]);
  });

  it('shows the term and the data of a leader, which the state has', async () => {
    await using contender = await Contender.on(masters.urls);
    const lock = await contender.acquire('leader:outbox', '30s');
    await lock.state.set({ term: 7, instance: 'another', since: 0 });
    expect((await run('inspect', 'leader:outbox')).stdout).not.toContain('term');
    const { instance, since } = lock.holder!;
    await lock.state.set({ term: 7, instance, since: since.getTime(), data: { port: 80 } });
    expect((await run('inspect', 'leader:outbox')).stdout).toContain('leads in term 7, data {"port":80}');
    expect(await json('inspect', 'leader:outbox')).toMatchObject({ state: 'held', term: 7, data: { port: 80 } });
    await lock.state.set({ term: 7, instance, since: since.getTime(), data: 'a\u202e\u009b31m' });
    expect((await run('inspect', 'leader:outbox')).stdout).toContain('data "a\\u{202e}\\u{9b}31m"');
  });

  it('reports an unknown state when a majority is dead, and does not ask a replica', async () => {
    const [a, b, c] = masters.servers;
    await a!.kill();
    await command(b!.port, 'REPLICAOF', '127.0.0.1', c!.port);
    const { status, stdout } = await run('inspect', 'x', '--timeout', '2s');
    expect(status).toBe(1);
    expect(stdout).toContain('"x" is unknown');
    expect(stdout).toMatch(/ECONNREFUSED/);
    expect(stdout).toMatch(/it is a replica/);
  });
});

describe('list', () => {
  it('finds locks by name, pages through all of them, and hides internal keys', async () => {
    await using contender = await Contender.on(masters.urls);
    const lock = await contender.acquire('order:1', '30s');
    for (const { port } of masters.servers) {
      const sets = Array.from({ length: 1_500 }, (_, i) => `redis.call('SET', 'other:${i}', 1)`).join('\n');
      await command(port, 'EVAL', sets, 0);
      await command(port, 'HSET', 'lock:hash', 'a', 1);
      for (const name of ['lock:order:2', 'lock:job', 'lock:[x]*', 'lock:\0own'])
        await command(port, 'SET', name, 't', 'PX', 60_000);
    }
    await command(masters.servers[0]!.port, 'SET', 'lock:left', 't', 'PX', 60_000);
    await command(masters.servers[0]!.port, 'SET', 'lock:\x1b[31mred\n', 't', 'PX', 60_000);

    const { locks, unasked } = await json<Listing>('list');
    expect(unasked).toEqual([]);
    expect(locks.map(({ resource, state, heldOn }) => [resource, state, heldOn.length])).toEqual([
      ['\x1b[31mred\n', 'free', 1],
      ['[x]*', 'held', 3],
      ['job', 'held', 3],
      ['left', 'free', 1],
      ['order:1', 'held', 3],
      ['order:2', 'held', 3],
    ]);
    const none = await run('list', 'nosuch');
    expect(none.stdout).toBe('0 locks with the prefix "lock:" (--prefix names another)\n');
    const orders = await json<Listing>('list', 'order:*');
    expect(orders.locks.map(({ resource }) => resource)).toEqual(['order:1', 'order:2']);
    const text = await run('list');
    expect(text.stdout).toMatch(/"left" +│ leftover +│ - +│ 1 of 3/);
    expect(text.stdout).toContain('6 locks');
    // The output escapes control characters in names.
    expect(text.stdout).not.toContain('\x1b');
    await lock.release();
  });

  it('keeps services with different prefixes apart', async () => {
    await using plain = await Contender.on(first(), { keyPrefix: 'app:' });
    await using nested = await Contender.on(first(), { keyPrefix: 'app:jobs:' });
    await plain.acquire('a', '30s');
    await nested.acquire('b', '30s');
    const names = async (prefix: string) =>
      (await alone.json<Listing>('list', '--prefix', prefix)).locks.map((l) => l.resource);
    expect([await names('app:'), await names('app:jobs:'), await names('lock:')]).toEqual([['a'], ['b'], []]);
    // Glob characters in a prefix are literal.
    expect(await names('a*:')).toEqual([]);
  });

  it('names the masters that it could not reach', async () => {
    await masters.servers[0]!.kill();
    await command(masters.servers[1]!.port, 'ACL', 'SETUSER', 'default', '-scan');
    await command(masters.servers[2]!.port, 'REPLICAOF', '127.0.0.1', masters.servers[1]!.port);
    const ended = await cliProcess(['list', ...on(masters.urls), '--timeout', '2s']);
    expect(ended.status).toBe(1);
    expect(ended.stderr).toMatch(/was not asked: .*ECONNREFUSED/);
    expect(ended.stderr).toMatch(/was not asked: .*scan/);
    expect(ended.stderr).toMatch(/was not asked: it is a replica/);
    expect(ended.stdout).toMatch(/^no lock was found/);
  });
});

describe('release', () => {
  it('frees a lock that its holder extends, but only after the holder has noticed the loss', async () => {
    await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    await using next = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const lock = await contender.acquire('order:1', 6_000, { extend: true });
    const waiting = next.acquire('order:1', 6_000, { wait: '60s' });
    let lostFirst: boolean | undefined;
    waiting.then(
      () => (lostFirst = lock.loss !== undefined),
      () => undefined,
    );
    const { status, stdout } = await run('release', 'order:1', '--yes');
    expect(status).toBe(0);
    const [audit = ''] = stdout.split('\n').filter((line) => line.startsWith('audit: '));
    expect(audit).toMatch(
      /^audit: \d{4}-\d\d-\d\dT[\d:.]+Z "\S+@\S+" released "order:1" \(revoked, .* left\) on 3 of 3/,
    );
    for (const { port } of masters.servers) expect(audit).toContain(`127.0.0.1:${port}`);

    await eventually(() => lock.loss !== undefined);
    expect(lock.loss?.cause).toBe('owner-changed');
    expect(lock.signal.aborted).toBe(true);
    const second = await waiting;
    expect(lostFirst).toBe(true);
    await second.release();
  });

  it('says that a living holder is told that its lock was freed at once', async () => {
    await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const lock = await contender.acquire('job', '30s');
    const { status, stdout } = await run('release', 'job', '--yes', '--at-once');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^"job" is free now$/m);
    expect(stdout).toContain('a holder that is alive is told with its next extension');
    expect(await json('inspect', 'job')).toMatchObject({ state: 'free' });
    await expect(lock.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'gone' });
  });

  it.each([
    ['no', 'n\n', 1, cli],
    ['nothing', '', 1, cli],
    ['yes', 'yes\n', 0, cli],
    ['y, in a process of its own', 'Y\n', 0, (args: string[], input: string) => cliProcess(args, { input })],
  ] as const)('asks for confirmation, and gets the answer: %s', async (_, input, expected, answer) => {
    await using contender = await Contender.on(first());
    await contender.acquire('order:1', '30s');
    const before = await command(masters.servers[0]!.port, 'GET', 'lock:order:1');
    const { status, stdout, stderr } = await answer(['release', 'order:1', ...on(first()), ...PATIENTLY], input);
    expect(status).toBe(expected);
    expect(stderr).toContain('a process that may be working');
    expect(stderr).toContain('fencing token');
    expect(stderr).toContain('Release it? Type yes or y: ');
    expect(stdout.includes('audit: ')).toBe(expected === 0);
    const after = await command(masters.servers[0]!.port, 'GET', 'lock:order:1');
    expect(after === before).toBe(expected === 1);
    // The output does not show the token, which is a secret.
    expect(stdout + stderr).not.toContain(String(before));
  });

  it('releases only the lock that it has shown, and not one taken while it asked for confirmation', async () => {
    const { port } = masters.servers[0]!;
    for (const args of [[], ['--at-once']]) {
      await command(port, 'SET', 'lock:x', 'first', 'PX', 60_000);
      const running = startCli(['release', 'x', ...args, ...on(first()), ...PATIENTLY]);
      await running.asked;
      await command(port, 'SET', 'lock:x', 'second', 'PX', 60_000);
      running.type('yes\n');
      expect((await running.ended).status).toBe(0);
      expect(await command(port, 'GET', 'lock:x')).toBe('second');
    }
  });

  it('fails and reports it while a majority keeps the lock', async () => {
    const [a, b, c] = masters.servers;
    for (const { port } of masters.servers) await command(port, 'SET', 'lock:x', 'token', 'PX', 60_000);
    await a!.kill();
    await b!.kill();
    const ended = await run('release', 'x', '--yes', '--timeout', '2s');
    expect(ended.status).toBe(1);
    expect(ended.stderr).toContain('too few masters gave it up');
    expect(ended.stdout).toMatch(/failed to release "x" .* on 1 of 3 masters \(127\.0\.0\.1:\d+\), not on /);
    expect(ended.stdout).toContain(`(127.0.0.1:${c!.port})`);
  });

  it('ends with 1 if nothing is held, and with 0 for a lock that was released already', async () => {
    const release = (...args: readonly string[]) => alone.run('release', 'x', ...args);
    expect(await release()).toMatchObject({
      ...{ status: 1, stdout: '"x" is not held, so nothing was released\n' },
    });
    expect((await alone.run('release', 'lock:x')).stdout).toContain('is named "x"');
    expect((await alone.run('release', 'x:*')).stdout).toContain('a pattern is not accepted here: list "x:*"');
    await command(masters.servers[0]!.port, 'SET', 'lock:x', 'token', 'PX', 60_000);
    expect((await release('--yes')).status).toBe(0);
    expect(await release()).toMatchObject({
      ...{ status: 0, stdout: expect.stringContaining('"x" was released already') },
    });
    expect((await alone.run('inspect', 'x')).stdout).toMatch(
      /"x" is held, for \d.* at most, since it was released by force/,
    );
    expect((await alone.run('list', 'x')).stdout).toMatch(/"x" +│ released +│/);
    expect((await release('--yes', '--at-once')).status).toBe(0);
    expect(await leftovers(masters.servers[0]!.port)).toEqual([]);
    // A lock without expiry, which never ends by itself.
    await command(masters.servers[0]!.port, 'SET', 'lock:x', 'token');
    expect((await release('--yes')).status).toBe(0);
    expect(await leftovers(masters.servers[0]!.port)).toEqual([]);
  });
});

describe('Shared locks and permits', () => {
  const SHARED = { mode: 'shared', wait: 0 } as const;

  interface Listed {
    readonly resource: string;
    readonly slot?: number;
    readonly state: string;
    readonly sharedBy?: number;
    readonly heldOn: readonly string[];
  }

  async function listed(...args: readonly string[]): Promise<readonly Listed[]> {
    return (await json<{ readonly locks: readonly Listed[] }>('list', ...args)).locks;
  }

  describe('inspect', () => {
    it('shows by how many holders a lock is shared', async () => {
      await using contender = await Contender.on(masters.urls);
      const [one, two] = [
        await contender.acquire('prices', '30s', SHARED),
        await contender.acquire('prices', '30s', SHARED),
      ];
      const shared = await run('inspect', 'prices');
      expect(shared).toMatchObject({ status: 0, stderr: '' });
      expect(shared.stdout).toMatch(/^shared by 2 holders$/m);
      expect(shared.stdout.match(/held, shared by 2 holders, \d+\.\d s/g)).toHaveLength(3);
      await one.release();
      expect(await json('inspect', 'prices')).toMatchObject({ state: 'held', sharedBy: 1 });
      await two.release();
      expect((await run('inspect', 'prices')).stdout).toContain('"prices" is free');
      for (const { port } of masters.servers) expect(await leftovers(port)).toEqual([]);
    });

    it('shows which permits of a name are taken', async () => {
      await using contender = await Contender.on(masters.urls);
      const held = await contender.acquire('stripe', '30s', { permits: 3, wait: 0 });
      const { status, stdout } = await run('inspect', 'stripe', '--permits', '3');
      expect(status).toBe(0);
      expect(stdout).toContain('"stripe": 1 of 3 permits taken');
      expect(stdout).toMatch(new RegExp(`${held.slot} +│ held +│ \\d+\\.\\d s +│ 3 of 3`));
      const states = [0, 1, 2].map((slot) => ({ slot, state: slot === held.slot ? 'held' : 'free' }));
      expect(await json('inspect', 'stripe', '--permits', '3')).toMatchObject({
        ...{ resource: 'stripe', permits: 3, taken: 1, waiting: 0, slots: states },
      });
      const wrong = await run('inspect', 'stripe', '--permits', 'many');
      const refusal = 'error: --permits must be an integer from 1 to 1000, got "many"\n';
      expect(wrong).toMatchObject({ status: 2, stderr: refusal });
    });
  });

  describe('inspect of a name with permits', () => {
    it('shows those that are taken, without their number, and not only that the lock is free', async () => {
      await using contender = await Contender.on(masters.urls);
      expect((await run('inspect', 'stripe')).stdout).not.toContain('permit');
      expect(await json('inspect', 'stripe')).not.toHaveProperty('takenPermits');
      await contender.acquire('stripe', '30s', { permits: 2, wait: 0 });
      const two = await contender.acquire('stripe', '30s', { permits: 2, wait: 0 });
      const { status, stdout, stderr } = await run('inspect', 'stripe');
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout).toContain('"stripe" is free (held on 0 of 3 masters');
      expect(stdout).toMatch(/#0 +│ held +│ \d+\.\d s +│ 3 of 3/);
      expect(stdout).toContain('no lock of this name, but 2 permits of "stripe" are taken: #0, #1');
      expect(await json('inspect', 'stripe')).toMatchObject({
        ...{ state: 'free', takenPermits: { waiting: 0, slots: [{ slot: 0 }, { slot: 1 }] } },
      });
      await two.release();
      await contender.acquire('stripe', '30s');
      expect((await run('inspect', 'stripe')).stdout).toContain(
        `beside the lock, 1 permit of "stripe" is taken: #${two.slot === 0 ? 1 : 0}`,
      );
      const fewer = await run('inspect', 'stripe', '--permits', '1');
      expect(fewer.stderr).toContain('note: "stripe" is held as a lock: inspect it without --permits');
    });

    it('names permits beyond the number that was given, and a lock of that name', async () => {
      await using contender = await Contender.on(masters.urls);
      for (let count = 0; count < 4; count++) await contender.acquire('stripe', '30s', { permits: 4, wait: 0 });
      await contender.acquire('prices', '30s', SHARED);
      const few = await run('inspect', 'stripe', '--permits', '2');
      expect(few.stdout).toContain('"stripe": 2 of 2 permits taken');
      expect(few.stderr).toBe(
        'note: more permits of this name are taken: #2, #3. Give the number that the application gives\n',
      );
      expect(await json('inspect', 'stripe', '--permits', '2')).toMatchObject({ taken: 2, beyond: [2, 3] });
      const lock = await run('inspect', 'prices', '--permits', '5');
      expect(lock.stdout).toContain('"prices": 0 of 5 permits taken');
      expect(lock.stderr).toBe('note: "prices" is held as a lock, shared by 1 holder: inspect it without --permits\n');
    });
  });

  it('list shows shared locks and permits beside exclusive locks', async () => {
    await using contender = await Contender.on(masters.urls);
    for (const { port } of masters.servers) {
      await command(port, 'ZADD', 'lock:scores', 1, 'of another program');
      await command(port, 'HSET', 'lock:hash', 'a', 1);
    }
    await contender.acquire('order:1', '30s');
    await contender.acquire('prices', '30s', SHARED);
    const slots = [
      (await contender.acquire('stripe', '30s', { permits: 2, wait: 0 })).slot,
      (await contender.acquire('stripe', '30s', { permits: 2, wait: 0 })).slot,
    ];
    await contender.acquire('eu:stripe', '30s', { permits: 1, wait: 0 });
    expect([...slots].sort()).toEqual([0, 1]);

    const all = await listed();
    expect(all.map(({ resource, slot, state, sharedBy }) => [resource, slot, state, sharedBy])).toEqual([
      ['eu:stripe', 0, 'held', undefined],
      ['order:1', undefined, 'held', undefined],
      ['prices', undefined, 'held', 1],
      ['stripe', 0, 'held', undefined],
      ['stripe', 1, 'held', undefined],
    ]);
    expect(all.every(({ heldOn }) => heldOn.length === 3)).toBe(true);
    // The pattern is that of the name, and not of the key, in which the number precedes the name.
    expect((await listed('stripe')).map(({ resource }) => resource)).toEqual(['stripe', 'stripe']);
    expect((await listed('*[o-s]tr?pe')).map(({ slot }) => slot)).toEqual([0, 0, 1]);
    const { stdout } = await run('list');
    expect(stdout).toMatch(/"stripe" #1 +│ held/);
    expect(stdout).toMatch(/"prices" +│ held .*shared by 1 holder/);
    expect(stdout).toContain('2 locks with 2 holders, 3 permits');
    expect(stdout).not.toContain('\0');
  });

  describe('release', () => {
    it('takes a permit away from its holder, and leaves the others alone', async () => {
      await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
      const [one, two] = [
        await contender.acquire('stripe', '30s', { permits: 2, wait: 0 }),
        await contender.acquire('stripe', '30s', { permits: 2, wait: 0 }),
      ];
      const ended = await run('release', 'stripe', '--yes', '--permit', String(one.slot));
      expect(ended.status).toBe(0);
      expect(ended.stdout).toContain(` released "stripe" #${one.slot} (revoked, `);
      await expect(one.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'owner-changed' });
      await expect(two.extend()).resolves.toBeUndefined();
      const slot = String(two.slot);
      expect(await json('release', 'stripe', '--yes', '--at-once', '--permit', slot)).toMatchObject({
        resource: 'stripe',
        slot: two.slot,
        released: true,
      });
      await using next = await Contender.on(masters.urls, { masterTimeout: 1_000 });
      expect((await next.acquire('stripe', '30s', { permits: 2, wait: 0 })).slot).toBe(two.slot);
    });

    it('names the permits of a name whose lock is not held', async () => {
      await using contender = await Contender.on(masters.urls);
      await contender.acquire('stripe', '30s', { permits: 1, wait: 0 });
      const hint = 'the permit #0 of this name is taken, and --permit 0 would release that one';
      for (const [args, name] of [
        [[], '"stripe"'],
        [['--permit', '7'], '"stripe" #7'],
      ] as const) {
        const { status, stdout } = await run('release', 'stripe', '--yes', ...args);
        expect([status, stdout]).toEqual([1, `${name} is not held, so nothing was released: ${hint}\n`]);
      }
    });

    it('refuses to take a shared lock away, and explains what ends it', async () => {
      await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
      const lock = await contender.acquire('prices', '30s', SHARED);
      for (const args of [[], ['--at-once']]) {
        const ended = await run('release', 'prices', '--yes', ...args);
        expect(ended).toMatchObject({ status: 1, stdout: '' });
        expect(ended.stderr).toMatch(
          /^"prices" is shared by 1 holder, and a shared lock cannot be taken away\. A holder that has crashed ends by itself, in at most \d+\.\d s; /,
        );
      }
      await expect(lock.extend()).resolves.toBeUndefined();
      expect(await json('release', 'prices', '--yes')).toMatchObject({ resource: 'prices', released: false });
    });

    it('refuses what is not the slot of a permit', async () => {
      const { status, stderr } = await run('release', 'stripe', '--permit', '-1');
      expect([status, stderr]).toEqual([2, expect.stringContaining('--permit must be the slot of a permit')]);
    });
  });
});

describe('jobs', () => {
  const NOON = Date.UTC(2026, 10, 22, 12);
  const WRITING = { holder: 'web-1:1', at: NOON + 10 };
  const BEGUN = startRecord(undefined, { tick: NOON, attempt: 1 }, WRITING);
  const FAILED = endRecord(BEGUN, { holder: 'web-1:1', at: NOON + 2_010 }, { message: 'the disk is full' });

  interface Job {
    readonly name: string;
    readonly state: string;
    readonly isSettled: boolean;
  }

  /** For dead masters, which are given up on only then. */
  const jobsWithin2s = (...args: readonly string[]) => run('jobs', ...args, '--timeout', '2s');

  async function listed(...args: readonly string[]): Promise<readonly Job[]> {
    return (await json<{ jobs: readonly Job[] }>('jobs', ...args)).jobs;
  }

  async function take(contender: Contender, name: string, record: unknown): Promise<Lock> {
    const lock = await contender.acquire(jobResource(name), '30s', { wait: '20s', extend: true });
    await lock.state.set(record);
    return lock;
  }

  it('shows the last run of each job, and the runs of one', async () => {
    await using contender = await Contender.on(masters.urls);
    const running = await take(contender, 'sync', BEGUN);
    await (await take(contender, 'report', FAILED)).release();
    await (await take(contender, 'crashed', BEGUN)).release();
    await (await take(contender, 'not a record', { cursor: 7 })).release();

    expect(await listed()).toMatchObject([
      { name: 'crashed', state: 'unfinished', isSettled: true },
      { name: 'report', state: 'failed', isSettled: true },
      { name: 'sync', state: 'running', isSettled: true },
    ]);
    const all = await run('jobs');
    expect(all).toMatchObject({ status: 0, stderr: '' });
    expect(all.stdout).toMatch(/report +│ failed +│ 2026-11-22 12:00:00Z │ 2\.0 s │ web-1:1 +│ 1 +│ yes/);
    expect(all.stdout).toContain('3 jobs');
    const one = await run('jobs', 'report');
    expect(one).toMatchObject({ status: 0, stderr: '' });
    expect(one.stdout).toMatch(/failed .*the disk is full/);
    expect(one.stdout).toContain('"report" is failed\n');
    await running.release();
  });

  it('reads by the rule of a majority', async () => {
    await using contender = await Contender.on(masters.urls);
    await (await take(contender, 'report', FAILED)).release();
    const entry = new Keyspace('lock:').stateOf(jobResource('report'));
    const [a, b, c] = masters.servers;
    await command(a!.port, 'DEL', entry);
    expect(await listed()).toMatchObject([{ name: 'report', isSettled: true }]);
    await command(b!.port, 'DEL', entry);
    const lost = await run('jobs', 'report');
    expect(lost.status).toBe(0);
    expect(lost.stdout).toContain('"report" is failed, but no majority of the masters has stored that');

    await a!.kill();
    await command(c!.port, 'ACL', 'SETUSER', 'default', '-scan');
    const tooFew = await jobsWithin2s();
    expect(tooFew.status).toBe(1);
    expect(tooFew.stderr).toMatch(/was not asked: .*ECONNREFUSED/);
    expect(tooFew.stderr).toMatch(/was not asked: .*scan/);
    // The record of one job needs no SCAN.
    expect(await jobsWithin2s('report')).toMatchObject({ status: 0 });
  });

  it('ends with status 1 for a job without a record, and 2 for a name that cannot be one', async () => {
    const none = await run('jobs');
    expect(none).toMatchObject({
      ...{ status: 0, stdout: '0 jobs with a record with the prefix "lock:" (--prefix names another)\n' },
    });
    const missing = await run('jobs', 'nosuch');
    expect(missing).toMatchObject({ status: 1, stdout: '' });
    expect(missing.stderr).toContain('the job "nosuch" has no record with the prefix "lock:"');
    expect(await run('jobs', 'undefined')).toMatchObject({ status: 2 });
  });

  it('knows the records of applications without a restart guard', async () => {
    await using contender = await Contender.on(masters.urls, { restartGuard: false });
    await (await take(contender, 'report', FAILED)).release();
    expect(await listed()).toMatchObject([{ name: 'report', isSettled: true }]);
  });
});
