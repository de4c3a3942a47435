import { describe, expect, it, jest } from '@jest/globals';
import { cli, cliProcess, on, startCli } from '../support/cli.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { leftovers } from '../support/leftovers.js';
import { Contender } from '../support/redlocks.js';
import { commandLineOn } from './support/command-line.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(90_000);

interface Listing {
  readonly locks: readonly { readonly resource: string; readonly state: string; readonly heldOn: readonly string[] }[];
  readonly unasked: readonly unknown[];
}

/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
const masters = sharedMasters(3);
const { run, json } = commandLineOn(() => masters.urls);
/** Those of the tests for which one master is enough. */
const first = () => masters.urls.slice(0, 1);
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

  it('hints at the prefix when it is given the name of a key', async () => {
    const { status, stderr } = await alone.run('inspect', 'lock:order:1');
    expect(status).toBe(0);
    expect(stderr).toBe(
      'note: "lock:" is the prefix of the keys; the lock with the key "lock:order:1" is named "order:1"\n',
    );
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

  it('frees the lock of a dead holder at once for the next waiter', async () => {
    await using gone = await Contender.on(masters.urls, { maxTtl: '1h' });
    await gone.acquire('job', '1h');
    await using next = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const waiting = next.acquire('job', '30s', { wait: '60s' });
    const { status, stdout } = await run('release', 'job', '--yes', '--at-once', '--json');
    expect(status).toBe(0);
    const taken = masters.servers.map(({ port }) => `127.0.0.1:${port}`);
    expect(JSON.parse(stdout)).toMatchObject({
      resource: 'job',
      mode: 'at-once',
      released: true,
      taken,
      unreached: [],
    });
    await (await waiting).release();
  });

  it('says that a living holder takes a lock back that was freed at once', async () => {
    await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const lock = await contender.acquire('job', '30s');
    const { status, stdout } = await run('release', 'job', '--yes', '--at-once');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^"job" is free now$/m);
    expect(stdout).toContain('a holder that is alive takes it back with its next extension');
    await expect(lock.extend()).resolves.toBeUndefined();
    expect(await json('inspect', 'job')).toMatchObject({ state: 'held' });
    const { stdout: revoked } = await run('release', 'job', '--yes');
    expect(revoked).not.toContain('takes it back');
    await expect(lock.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
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

  it('counts the masters that released the lock in an earlier attempt', async () => {
    const [a, b, c] = masters.servers;
    for (const { port } of [a!, c!]) await command(port, 'SET', 'lock:x', 'token', 'PX', 60_000);
    const args = ['release', 'x', '--yes', '--timeout', '2s'];
    await cli([...args, ...on([a!.url])]);
    await b!.kill();
    const ended = await cli([...args, ...on(masters.urls)]);
    expect(ended.status).toBe(0);
    expect(ended.stdout).toMatch(/released already/);
    expect(ended.stdout).toMatch(/ released "x" .* on 1 of 3 masters \(127\.0\.0\.1:\d+\), not on /);
  });

  it('ends with 1 if nothing is held, and with 0 for a lock that was released already', async () => {
    const release = (...args: readonly string[]) => alone.run('release', 'x', ...args);
    expect(await release()).toMatchObject({
      ...{ status: 1, stdout: '"x" is not held, so nothing was released\n' },
    });
    expect((await alone.run('release', 'lock:x')).stdout).toContain('is named "x"');
    await command(masters.servers[0]!.port, 'SET', 'lock:x', 'token', 'PX', 60_000);
    expect((await release('--yes')).status).toBe(0);
    expect(await release()).toMatchObject({
      ...{ status: 0, stdout: expect.stringContaining('"x" was released already') },
    });
    expect((await release('--yes', '--at-once')).status).toBe(0);
    expect(await leftovers(masters.servers[0]!.port)).toEqual([]);
    // A lock without expiry, which never ends by itself.
    await command(masters.servers[0]!.port, 'SET', 'lock:x', 'token');
    expect((await release('--yes')).status).toBe(0);
    expect(await leftovers(masters.servers[0]!.port)).toEqual([]);
  });
});
