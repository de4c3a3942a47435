import { describe, expect, it, jest } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { cli, cliProcess, type Ended, on, startCli } from '../support/cli.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(90_000);

/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
const MARKER = 'lock:\0incarnation';
/** Longer than any test here. A master that votes earlier was trusted. */
const MAX_TTL = 600_000;
const GUARDED = { ttl: 4_000, maxTtl: MAX_TTL, masterTimeout: 1_000, restartGuard: true };

const masters = sharedMasters(3);

function trust(urls: readonly string[], master: string, args: readonly string[], input = ''): Promise<Ended> {
  return cli(['trust', master, ...on(urls), ...PATIENTLY, ...args], input);
}

function nameOf({ port }: { readonly port: number }): string {
  return `127.0.0.1:${port}`;
}

async function fieldsOf(port: number): Promise<Record<string, string>> {
  const list = (await command(port, 'HGETALL', MARKER)) as string[];
  return Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? '']] : [])));
}

async function hasMarker(port: number): Promise<void> {
  await eventually(async () => (await command(port, 'EXISTS', MARKER)) === 1);
}

function states(contender: Contender): string[] {
  return contender.redlock.status().masters.map(({ state }) => state);
}

/** Starts a process whose one master stays in quarantine for ten minutes, unless an operator ends the quarantine. */
async function withWaiting(action: (server: RedisServer, contender: Contender) => Promise<void>): Promise<void> {
  const [server] = masters.servers;
  await using contender = await Contender.on([server!.url], GUARDED);
  await hasMarker(server!.port);
  await action(server!, contender);
}

describe('trust', () => {
  it('lets two of three restarted masters vote at once, so that locks can be taken, and prints an audit line', async () => {
    await using contender = await Contender.on(masters.urls, GUARDED);
    await eventually(() => states(contender).every((state) => state === 'voting'));
    const [a, b] = masters.servers;
    await Promise.all([a!.restart(), b!.restart()]);
    await Promise.all([hasMarker(a!.port), hasMarker(b!.port)]);
    const before = await fieldsOf(a!.port);

    const args = ['trust', nameOf(a!), ...on(masters.urls), ...PATIENTLY, '--yes'];
    const { status, stdout, stderr } = await cliProcess(args);
    expect([status, stderr]).toEqual([0, '']);
    const [audit = ''] = stdout.split('\n').filter((line) => line.startsWith('audit: '));
    expect(audit).toMatch(
      /^audit: \d{4}-\d\d-\d\dT[\d:.]+Z "\S+@\S+" trusted "127.0.0.1:\d+" \(run \w{40}, .*, (?:9|10)\.\d min of its wait left\)$/,
    );
    expect(audit).toContain(nameOf(a!));
    expect(stdout).toContain(`the votes of ${nameOf(a!)} count from now on`);

    await eventually(() => states(contender)[0] === 'voting');
    expect(states(contender)[1]).not.toBe('voting');
    const lock = await contender.acquire('order:1', 4_000, { wait: '10s' });
    await lock.release();

    const after = await fieldsOf(a!.port);
    const { run, replid, nonce, known } = before;
    expect(after).toMatchObject({ run, replid, nonce, known, by: expect.stringMatching(/@/) });
    expect(after.why).toBe(`trusted by ${after.by}`);
    expect(Number(after.from)).toBeLessThan(Number(before.from));
  });

  it('writes a new marker for unknown data, with the largest ttl that the other masters know', async () => {
    const first = await Contender.on(masters.urls, GUARDED);
    await eventually(() => states(first).every((state) => state === 'voting'));
    const [a, b] = masters.servers;
    const { nonce } = await fieldsOf(a!.port);
    await first.close();
    await a!.restart();
    await trust(masters.urls, a!.url, ['--yes', '--json']).then(({ status, stdout }) => {
      expect(status).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ master: nameOf(a!), trusted: true, left: null, vetoed: false });
    });
    const after = await fieldsOf(a!.port);
    expect(after).toMatchObject({ vetoed: '0', known: String(MAX_TTL) });
    expect(after.nonce).toMatch(/^[\w-]{28}$/);
    expect(after.nonce).not.toBe(nonce);
    await b!.kill();
    // A quorum needs the vote of this master.
    await using contender = await Contender.on(masters.urls, GUARDED);
    expect(states(contender)[0]).toBe('voting');
    await (await contender.acquire('order:1')).release();
  });

  it.each([
    ['no', 'n\n', 1],
    ['nothing', '', 1],
    ['yes', 'yes\n', 0],
  ])('warns and asks for confirmation, and gets the answer: %s', async (_, input, expected) => {
    await withWaiting(async (server, contender) => {
      const { status, stdout, stderr } = await trust([server.url], nameOf(server), [], input);
      expect(status).toBe(expected);
      expect(stdout).toMatch(/waits +│ (?:9|10)\.\d min/);
      expect(stdout).toContain(`test:${process.pid}`);
      expect(stderr).toContain('two holders at the same time');
      expect(stderr).toContain('fencing token');
      expect(stderr).toContain('Trust it? Type yes: ');
      expect(stdout.includes('audit: ')).toBe(expected === 0);
      const { from } = await fieldsOf(server.port);
      expect(Number(from) < Date.now() + MAX_TTL / 2).toBe(expected === 0);
      if (expected === 0) await eventually(() => states(contender)[0] === 'voting');
      else expect(states(contender)[0]).not.toBe('voting');
    });
  });

  it('accepts ttls announced while it asks for confirmation, but refuses data that changed meanwhile', async () => {
    await withWaiting(async (server) => {
      const args = ['trust', nameOf(server), ...on([server.url]), ...PATIENTLY];
      const flushed = startCli(args);
      await flushed.asked;
      await command(server.port, 'HSET', MARKER, 'nonce', 'of other data');
      flushed.type('yes\n');
      expect(await flushed.ended).toMatchObject({ status: 1, stderr: expect.stringContaining('changed meanwhile') });
      expect((await fieldsOf(server.port)).by).toBe(`test:${process.pid}`);

      const vetoed = startCli(args);
      await vetoed.asked;
      await command(server.port, 'HSET', MARKER, 'vetoed', 1);
      vetoed.type('yes\n');
      expect(await vetoed.ended).toMatchObject({ status: 1, stderr: expect.stringContaining('objected meanwhile') });

      const announced = startCli(args);
      await announced.asked;
      await command(server.port, 'HSET', MARKER, 'known', 700_000);
      announced.type('yes\n');
      const { status, stdout, stderr } = await announced.ended;
      expect([status, stdout]).toEqual([0, expect.stringContaining('against the veto of a holder')]);
      expect(stderr).toContain('objected to an early end');
      expect((await fieldsOf(server.port)).known).toBe('700000');
    });
  });

  it('has nothing to do for a master that votes', async () => {
    const { port, url } = masters.servers[0]!;
    const options = { ...GUARDED, ttl: 1_000, maxTtl: 1_000, masterTimeout: 250 };
    await using contender = await Contender.on([url], options);
    await eventually(() => states(contender)[0] === 'voting');
    const before = await fieldsOf(port);
    const ended = await trust([url], nameOf({ port }), ['--yes']);
    expect(ended).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('nothing to do') });
    expect(ended.stdout).not.toContain('audit');
    expect((await fieldsOf(port)).by).toBe(before.by);
  });

  it('refuses a replica, a cluster node and a server that is down, and writes nothing', async () => {
    const [a, b] = masters.servers;
    const urls = [a!.url, b!.url];
    await using node = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    const replica = await trust(urls, nameOf(b!), ['--yes']);
    expect(replica).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('it is a replica') });
    const member = await trust([...urls, node.url], nameOf(node), ['--yes']);
    expect(member).toMatchObject({ status: 1, stderr: expect.stringContaining('it is a node of a cluster') });
    expect(await command(a!.port, 'DBSIZE')).toBe(0);
    await node.kill();
    const down = await trust([...urls, node.url], nameOf(node), ['--yes', '--json']);
    expect(down.status).toBe(1);
    expect(JSON.parse(down.stdout)).toMatchObject({
      trusted: false,
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('rejects an address that is not one of the masters as misuse, and shows no password', async () => {
    for (const master of ['127.0.0.1:2', 'redis://app:secret@127.0.0.1:2', 'app:secret@nowhere']) {
      const ended = await trust(['redis://127.0.0.1:1'], master, ['--yes']);
      expect(ended).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringContaining('give one of 127.0.0.1:1'),
      });
      expect(ended.stderr).not.toContain('secret');
    }
  });
});
