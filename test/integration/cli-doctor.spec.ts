import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { cli, cliProcess, type Ended, on } from '../support/cli.js';
import { buildClockShim } from '../support/clock-shim.js';
import { command } from '../support/command.js';
import { leftovers } from '../support/leftovers.js';
import { eventually } from '../support/eventually.js';
import { MARKER } from '../support/guarded.js';
import { Contender } from '../support/redlocks.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const PASSWORD = 'a#password/to:hide@me';
const encoded = encodeURIComponent(PASSWORD);
/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
/** For tests that do not concern the restart guard: masters vote even if no application has connected to them yet. */
const UNGUARDED = '--no-restart-guard';
/** The permissions that docs/operations.md lists for a Redis user. */
const NEEDED =
  '~lock:* &lock:* +set +get +del +exists +pexpire +pttl +zadd +zcard +zrem +zscore +zrange +publish +pubsub|numsub ' +
  '+subscribe +hget +hset +hmget +time +eval +evalsha +script|load +info +zremrangebyscore +pexpireat +mget';

const masters = sharedMasters(3);
/** The first of the masters. */
const some = (count: number): readonly string[] => masters.urls.slice(0, count);

function doctor(urls: readonly string[], ...args: string[]): Promise<Ended> {
  return cli(['doctor', ...on(urls), ...PATIENTLY, ...args]);
}

/** Connects an application to the masters, and waits until all of them vote. */
async function met(urls: readonly string[], maxTtl: number): Promise<Contender> {
  const contender = await Contender.on(urls, { ttl: maxTtl, masterTimeout: 250, restartGuard: true });
  await eventually(() => contender.redlock.masters.status().masters.every(({ state }) => state === 'voting'));
  return contender;
}

/** Lines of the verdict that report a problem. */
function problemsIn({ stdout }: Ended): string[] {
  return stdout.split('\n').filter((line) => line.startsWith('problem:'));
}

function expectSilenceAbout(secret: string, ended: Ended): void {
  const said = ended.stdout + ended.stderr;
  for (const form of [secret, encodeURIComponent(secret)]) expect(said).not.toContain(form);
}

async function withUser(server: RedisServer, rules: string): Promise<string> {
  await command(server.port, 'ACL', 'SETUSER', 'app', 'reset', 'on', `>${PASSWORD}`, ...rules.split(' '));
  return server.url.replace('redis://', `redis://app:${encoded}@`);
}

describe('doctor', () => {
  it('exits with 1 on three masters that no application has connected to, and leaves nothing on them', async () => {
    const ended = await doctor(masters.urls);
    expect(ended).toMatchObject({ status: 1, stderr: '' });
    expect(problemsIn(ended)).toEqual([
      'problem: no lock can be taken until a process has met the masters: 0 of 3 masters vote now, 2 must',
    ]);
    expect(ended.stdout).toContain(
      '-> start the application: masters wait for maxTtl after the first connection of a process',
    );
    expect(ended.stdout).toMatch(/1 problem: 0 of 3 masters vote, 2 must; no lock can be taken$/m);
    for (const { port } of masters.servers) {
      expect(ended.stdout).toContain(`127.0.0.1:${port}`);
      expect(await leftovers(port)).toEqual([]);
    }
    expect(ended.stdout).not.toContain('\x1b');
    const unguarded = await doctor(masters.urls, UNGUARDED);
    expect(unguarded).toMatchObject({ status: 0, stderr: '' });
    expect(unguarded.stdout).toContain('healthy: 3 of 3 masters vote, 2 must; locks work, and 1 may fail');
  });

  it('reports masters as healthy after an application has connected and they have waited', async () => {
    await using _ = await met(masters.urls, 1_000);
    const ended = await doctor(masters.urls);
    expect(ended).toMatchObject({ status: 0, stderr: '' });
    expect(ended.stdout).toContain('healthy: 3 of 3 masters vote, 2 must; locks work, and 1 may fail');
    expect(ended.stdout).not.toContain('note:');
    const lines = ended.stdout.split('\n').filter((line) => line.startsWith('│'));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it('reports how long no lock can be taken while a majority waits, and counts only voters', async () => {
    await using _ = await Contender.on(masters.urls, { ttl: 60_000, masterTimeout: 250, restartGuard: true });
    const [, , c] = masters.servers;
    await command(c!.port, 'HSET', MARKER, 'from', String(Date.now() - 1_000));
    const ended = await doctor(masters.urls);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([
      expect.stringMatching(/^problem: no lock can be taken for \d+\.\d s: 1 of 3 masters vote now, 2 must$/),
    ]);
    const json = JSON.parse((await doctor(masters.urls, '--json')).stdout) as Record<string, unknown>;
    expect(json).toMatchObject({
      ...{ healthy: false, quorum: 2, voters: [`127.0.0.1:${c!.port}`], locksIn: expect.any(Number) },
      examined: [false, false, true].map((votes) => ({ votes, wait: votes ? 0 : expect.any(Number) })),
    });
    expect(json.locksIn).toBeGreaterThan(1_000);
    expect(json.locksIn).toBeLessThanOrEqual(60_000);
  });

  it('finds one server under two addresses', async () => {
    const [a] = masters.servers;
    await using proxy = await TcpProxy.to(a!.port);
    const ended = await doctor([...some(2), proxy.url], UNGUARDED);
    expect(ended.status).toBe(1);
    const twin = `127.0.0.1:${proxy.port}: it is the same server as 127.0.0.1:${a!.port}`;
    expect(problemsIn(ended)).toEqual([expect.stringContaining(twin)]);
    expect(ended.stdout).toContain('2 of 3 masters vote');
  });

  it('reports whether locks survive the loss of the dead masters', async () => {
    const [a, b] = masters.servers;
    await a!.kill();
    const minority = await doctor(masters.urls, UNGUARDED);
    expect(minority.status).toBe(1);
    expect(problemsIn(minority)).toEqual([expect.stringMatching(`127.0.0.1:${a!.port}: .*ECONNREFUSED`)]);
    expect(minority.stdout).toContain('2 of 3 masters vote, 2 must; locks work, but no further master may fail');
    await b!.kill();
    const majority = await doctor(masters.urls, UNGUARDED);
    expect(majority.status).toBe(1);
    expect(problemsIn(majority)).toHaveLength(2);
    expect(majority.stdout).toContain('1 of 3 masters vote, 2 must; no lock can be taken');
  });

  it('says when --master-timeout is shorter than a round trip', async () => {
    await using far = await TcpProxy.to(masters.servers[0]!.port);
    far.replies.delay = 320;
    const given = await doctor([far.url], '--master-timeout', '100ms');
    expect(given.status).toBe(1);
    expect(problemsIn(given)).toEqual([expect.stringContaining('longer than masterTimeout (100 ms)')]);
  });

  it('does not wait for a hung master', async () => {
    masters.servers[0]!.pause();
    const ended = await cliProcess(['doctor', ...on(some(1)), '--timeout', '300ms']);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([expect.stringContaining('no answer within 300 ms')]);
    expect(ended.stdout).toContain(
      '-> its port takes connections, so it hangs or is slow: look at its load and its log',
    );
  });

  it('does not show a password that a server repeats', async () => {
    const args = ['AUTH', 'HELLO'].flatMap((name) => ['--rename-command', name, '']);
    await using server = await RedisServer.start({ args });
    const ended = await doctor([server.url.replace('redis://', `redis://:${encoded}@`)]);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([expect.stringMatching(/unknown command/i)]);
    expectSilenceAbout(PASSWORD, ended);
  });

  it('finds a wrong clock', async () => {
    using shim = buildClockShim();
    if (!shim) {
      console.log('No C compiler, or not Linux: a wrong clock is tested in test/unit/cli/findings.spec.ts only');
      return;
    }
    await using skewed = await RedisServer.start({ env: shim.env });
    shim.step(90_000);
    const ended = await doctor([skewed.url, ...some(2)], UNGUARDED);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([
      expect.stringMatching(`127.0.0.1:${skewed.port}: its clock is (?:89|90)\\.\\d s ahead of the others`),
    ]);
  });

  it('is satisfied with exactly the permissions that docs/operations.md lists', async () => {
    const ended = await doctor([await withUser(masters.servers[0]!, NEEDED)]);
    expect(problemsIn(ended)).toEqual([]);
    expect(ended.status).toBe(0);
    expectSilenceAbout(PASSWORD, ended);
  });

  it('finds each missing permission, and reports whether locks fail without it', async () => {
    const [server] = masters.servers;
    const url = await withUser(server!, '~other:* &other:* +@all -hset -zadd -evalsha');
    const ended = await doctor([url]);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toHaveLength(1);
    for (const rule of ['~lock:*', '&lock:*', '+hset', '+zadd', '+evalsha']) {
      expect(problemsIn(ended)[0]).toContain(rule);
    }
    expect(problemsIn(ended)[0]).toMatch(/: locks fail on it/);
    expect(problemsIn(ended)[0]).not.toMatch(/\+(?:get|set|time|subscribe)\b/);
    expect(ended.stdout).toContain('0 of 1 master votes, 1 must; no lock can be taken');
    const json = JSON.parse((await doctor([url], '--json')).stdout) as { examined: { missing: string[] }[] };
    expect(json.examined[0]?.missing.sort()).toEqual(['&lock:*', '+evalsha', '+hset', '+zadd', '~lock:*']);

    const slower = await doctor([await withUser(server!, `${NEEDED} -subscribe -info -pubsub`)]);
    expect(slower).toMatchObject({ status: 1, stderr: '' });
    expect(problemsIn(slower)).toEqual([
      expect.stringMatching(/lacks \+pubsub\|numsub \+info \+subscribe: locks work, but/),
    ]);
    expect(slower.stdout).toContain('1 of 1 master votes');
  });

  it('finds a server that lacks a command, and one that refuses writes', async () => {
    await using poor = await RedisServer.start({ args: ['--rename-command', 'EVALSHA', ''] });
    await using full = await RedisServer.start({ args: ['--maxmemory', '1'] });
    const [without, refusing] = [await doctor([poor.url]), await doctor([full.url])];
    expect([without.status, refusing.status]).toEqual([1, 1]);
    expect(problemsIn(without)).toEqual([expect.stringContaining('+evalsha: locks fail on it')]);
    expect(without.stdout).toContain('rename-command');
    expect(problemsIn(refusing)).toEqual([expect.stringContaining('it does not take a lock: OOM')]);
  });
});

describe('The masters of doctor', () => {
  it('can come from options, a file or the environment, with the same result', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redlock-cli-'));
    try {
      const file = join(folder, 'masters');
      await writeFile(file, `# the masters\n\n${masters.urls.join('\r\n')}\n`);
      const env = { REDLOCK_MASTERS: masters.urls.join(', ') };
      const all = [
        await doctor(masters.urls, UNGUARDED, '--json'),
        await doctor([], UNGUARDED, '--masters-file', file, '--json'),
        await cliProcess(['doctor', ...PATIENTLY, UNGUARDED, '--json'], { env }),
        // Command-line options take precedence over the environment.
        await cliProcess(['doctor', ...on(masters.urls), ...PATIENTLY, UNGUARDED, '--json'], {
          env: { REDLOCK_MASTERS: 'redis://127.0.0.1:1' },
        }),
      ];
      const names = masters.servers.map(({ port }) => `127.0.0.1:${port}`);
      for (const { status, stdout } of all) {
        expect(status).toBe(0);
        expect(JSON.parse(stdout)).toMatchObject({ healthy: true, voters: names });
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it.each<[string, string[]]>([
    ['none', ['doctor']],
    ['a file that is not there', ['doctor', '--masters-file', '/nowhere/masters']],
    ['several in one option', ['doctor', '--master', `redis://u:${encoded}@a,redis://u:${encoded}@b`]],
    ['a URL that cannot be parsed', ['doctor', '--master', `redis://u:${PASSWORD}@host`]],
    ['another scheme', ['doctor', '--master', `http://u:${encoded}@host`]],
    ['one address twice', ['doctor', ...on([`redis://:${encoded}@localhost`, 'redis://LOCALHOST:6379/1'])]],
    ['a URL without --master', ['doctor', `redis://u:${encoded}@host`]],
    ['a misspelled option', ['doctor', `--mastre=redis://u:${encoded}@host`]],
    ['an option after the URL', ['doctor', '--timeout', `redis://u:${encoded}@host`, '--master', 'redis://h']],
    ['no such command', [`redis://u:${encoded}@host`]],
    ['no command', []],
    ['a time limit that is none', ['doctor', '--master', 'redis://127.0.0.1:1', '--timeout', 'soon']],
  ])('%s: is rejected as misuse, and the error shows no credentials', async (_, args) => {
    const ended = await cli(args);
    expect(ended).toMatchObject({ status: 2, stdout: '' });
    expect(ended.stderr).toMatch(/^error: |^Usage: /);
    expectSilenceAbout(PASSWORD, ended);
  });

  it.each([
    [['--master', 'redis://127.0.0.1:1', 'doctor'], "unknown option '--master'"],
    [[`--master=redis://u:${encoded}@host`, 'doctor'], "unknown option '***'"],
    [['--json', 'doctor'], "unknown option '--json'"],
  ])('have to follow the command, and the error says so: %j', async (args, problem) => {
    const { stderr } = await cli(args);
    expect(stderr.split('\n')[0]).toBe(
      `error: ${problem}: options follow the command, as in npx nestjs-redlock doctor --master <url>`,
    );
  });

  it.each([
    [['--master', 'redis://a:1,redis://b:1'], 'is several addresses: give each as --master redis://host:6379'],
    [['redis://127.0.0.1:1', 'redis://127.0.0.1:2'], 'Give each master as --master <url>.'],
  ])('are each given by --master, and the error says so: %j', async (args, advice) =>
    expect((await cli(['doctor', ...args])).stderr).toContain(advice),
  );

  it('are explained by --help for each command, as the error of a command that does not exist says', async () => {
    expect((await cli(['nosuch'])).stderr).toMatch(/^error: unknown command 'nosuch'\n.*--help shows the commands/);
    const all = await cli(['--help']);
    expect(all.status).toBe(0);
    expect((await cli(['doctor', '--help'])).stdout).toMatch(/exit\s+status\s+1\s+if\s+there\s+is\s+a\s+problem/);
    for (const name of ['doctor', 'inspect', 'list', 'release']) {
      expect(all.stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
      const { status, stdout } = await cli([name, '--help']);
      expect([status, stdout.split('\n')[0]]).toEqual([0, expect.stringContaining(`Usage: nestjs-redlock ${name}`)]);
      expect(stdout).toContain('--master <url>');
    }
  });
});
