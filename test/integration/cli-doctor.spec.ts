import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { cli, type Ended, on } from '../support/cli.js';
import { buildClockShim } from '../support/clock-shim.js';
import { command } from '../support/command.js';
import { leftovers } from '../support/leftovers.js';
import { startMasters } from '../support/masters.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const PASSWORD = 'a#password/nobody:may@see';
const encoded = encodeURIComponent(PASSWORD);
/** Servers on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
/** What the README says that a user needs. */
const NEEDED =
  '~lock:* &lock:* +set +get +del +exists +pexpire +pttl +zadd +zrem +zpopmin +publish +subscribe +hget +hset ' +
  '+hmget +time +eval +evalsha +script|load +info';

function doctor(urls: readonly string[], ...args: string[]): Promise<Ended> {
  return cli(['doctor', ...on(urls), ...PATIENTLY, ...args]);
}

/** Lines of the verdict that tell of a problem. */
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
  it('finds a trio healthy, leaves nothing on it, and paints nothing that is no terminal', async () => {
    await using masters = await startMasters(3);
    const ended = await doctor(masters.urls);
    expect(ended).toMatchObject({ status: 0, stderr: '' });
    expect(ended.stdout).toContain('healthy: 3 of 3 masters can vote, 2 must; locks work, and 1 may fail');
    for (const { port } of masters.servers) {
      expect(ended.stdout).toContain(`127.0.0.1:${port}`);
      expect(await leftovers(port)).toEqual([]);
    }
    expect(ended.stdout).not.toContain('\x1b');
    // Just started: it says so, which is no problem.
    expect(ended.stdout).toMatch(/note: .* it was started .* ago/);
  }, 60_000);

  it('finds the replica in a trio', async () => {
    await using masters = await startMasters(3);
    const [a, b] = masters.servers;
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    const ended = await doctor(masters.urls);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([expect.stringMatching(`127.0.0.1:${b!.port}: it is a replica`)]);
    expect(ended.stdout).toContain('2 of 3 masters can vote, 2 must; locks work, but no further master may fail');
  }, 60_000);

  it('finds a master that evicts', async () => {
    await using masters = await startMasters(2);
    const lru = await RedisServer.start({ args: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] });
    try {
      const ended = await doctor([...masters.urls, lru.url]);
      expect(ended.status).toBe(1);
      expect(problemsIn(ended)).toEqual([expect.stringMatching(`127.0.0.1:${lru.port}: .*allkeys-lru drops locks`)]);
      expect(ended.stdout).toContain('CONFIG SET maxmemory-policy noeviction');
    } finally {
      await lru.stop();
    }
  }, 60_000);

  it('finds one server under two addresses', async () => {
    await using masters = await startMasters(2);
    const [a] = masters.servers;
    await using proxy = await TcpProxy.to(a!.port);
    const ended = await doctor([...masters.urls, proxy.url]);
    expect(ended.status).toBe(1);
    const twin = `127.0.0.1:${proxy.port}: it is the same server as 127.0.0.1:${a!.port}`;
    expect(problemsIn(ended)).toEqual([expect.stringContaining(twin)]);
    expect(ended.stdout).toContain('2 of 3 masters can vote');
  }, 60_000);

  it.each(['', 'wrong'])(
    'finds a login that fails, and tells no password: %j',
    async (wrong) => {
      await using masters = await startMasters(2);
      const guarded = await RedisServer.start({ args: ['--requirepass', PASSWORD] });
      try {
        const url = wrong ? guarded.url.replace('redis://', `redis://:${encoded}${wrong}@`) : guarded.url;
        const ended = await doctor([...masters.urls, url]);
        expect(ended.status).toBe(1);
        const code = wrong ? 'WRONGPASS' : 'NOAUTH';
        expect(problemsIn(ended)).toEqual([expect.stringMatching(`127.0.0.1:${guarded.port}: .*${code}`)]);
        expect(ended.stdout).toContain('user and password');
        expectSilenceAbout(PASSWORD, ended);
        const json = await doctor([...masters.urls, url], '--json');
        expect(JSON.parse(json.stdout)).toMatchObject({ healthy: false, masters: 3, quorum: 2 });
        expectSilenceAbout(PASSWORD, json);
      } finally {
        await guarded.stop();
      }
    },
    60_000,
  );

  it('tells no password to a reader when a server repeats it', async () => {
    const args = ['AUTH', 'HELLO'].flatMap((name) => ['--rename-command', name, '']);
    const server = await RedisServer.start({ args });
    try {
      const ended = await doctor([server.url.replace('redis://', `redis://:${encoded}@`)]);
      expect(ended.status).toBe(1);
      expect(problemsIn(ended)).toEqual([expect.stringMatching(/unknown command/i)]);
      expectSilenceAbout(PASSWORD, ended);
    } finally {
      await server.stop();
    }
  }, 60_000);

  it('tells whether locks survive the masters that are dead', async () => {
    await using masters = await startMasters(3);
    const [a, b] = masters.servers;
    await a!.kill();
    const minority = await doctor(masters.urls);
    expect(minority.status).toBe(1);
    expect(problemsIn(minority)).toEqual([expect.stringMatching(`127.0.0.1:${a!.port}: .*ECONNREFUSED`)]);
    expect(minority.stdout).toContain('2 of 3 masters can vote, 2 must; locks work, but no further master may fail');
    await b!.kill();
    const majority = await doctor(masters.urls);
    expect(majority.status).toBe(1);
    expect(problemsIn(majority)).toHaveLength(2);
    expect(majority.stdout).toContain('1 of 3 masters can vote, 2 must; no lock can be taken');
  }, 60_000);

  it('does not wait for a master that hangs', async () => {
    await using masters = await startMasters(1);
    masters.servers[0]!.pause();
    const ended = await cli(['doctor', ...on(masters.urls), '--timeout', '300ms']);
    expect(ended.status).toBe(1);
    expect(problemsIn(ended)).toEqual([expect.stringContaining('no answer within 300 ms')]);
  }, 60_000);

  it('finds a clock that is wrong', async () => {
    using shim = buildClockShim();
    if (!shim) {
      console.log('No C compiler, or not Linux: a wrong clock is tested in test/unit/cli/findings.spec.ts only');
      return;
    }
    await using masters = await startMasters(2);
    const skewed = await RedisServer.start({ env: shim.env });
    try {
      shim.step(90_000);
      const ended = await doctor([skewed.url, ...masters.urls]);
      expect(ended.status).toBe(1);
      expect(problemsIn(ended)).toEqual([
        expect.stringMatching(`127.0.0.1:${skewed.port}: its clock is (?:89|90)\\.\\d s ahead of the others`),
      ]);
    } finally {
      await skewed.stop();
    }
  }, 60_000);

  it('is content with exactly what the README says that a user needs', async () => {
    await using masters = await startMasters(1);
    const ended = await doctor([await withUser(masters.servers[0]!, NEEDED)]);
    expect(problemsIn(ended)).toEqual([]);
    expect(ended.status).toBe(0);
    expectSilenceAbout(PASSWORD, ended);
  }, 60_000);

  it('finds each permission that is missing, and whether locks fail without it', async () => {
    await using masters = await startMasters(1);
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
    expect(ended.stdout).toContain('0 of 1 masters can vote, 1 must; no lock can be taken');
    const json = JSON.parse((await doctor([url], '--json')).stdout) as { examined: { missing: string[] }[] };
    expect(json.examined[0]?.missing.sort()).toEqual(['&lock:*', '+evalsha', '+hset', '+zadd', '~lock:*']);

    const slower = await doctor([await withUser(server!, `${NEEDED} -subscribe -info`)]);
    expect(slower).toMatchObject({ status: 1, stderr: '' });
    expect(problemsIn(slower)).toEqual([expect.stringMatching(/lacks \+info \+subscribe: locks work, but/)]);
    expect(slower.stdout).toContain('1 of 1 masters can vote');
  }, 60_000);

  it('finds a server without a command, and one that refuses to write', async () => {
    const poor = await RedisServer.start({ args: ['--rename-command', 'EVALSHA', ''] });
    const full = await RedisServer.start({ args: ['--maxmemory', '1'] });
    try {
      const [without, refusing] = [await doctor([poor.url]), await doctor([full.url])];
      expect([without.status, refusing.status]).toEqual([1, 1]);
      expect(problemsIn(without)).toEqual([expect.stringContaining('+evalsha: locks fail on it')]);
      expect(without.stdout).toContain('rename-command');
      expect(problemsIn(refusing)).toEqual([expect.stringContaining('it does not take a lock: OOM')]);
    } finally {
      await Promise.all([poor.stop(), full.stop()]);
    }
  }, 60_000);
});

describe('The masters', () => {
  it('come from options, a file or the environment, and are the same', async () => {
    await using masters = await startMasters(3);
    const folder = await mkdtemp(join(tmpdir(), 'redlock-cli-'));
    try {
      const file = join(folder, 'masters');
      await writeFile(file, `# the masters\n\n${masters.urls.join('\r\n')}\n`);
      const env = { REDLOCK_MASTERS: masters.urls.join(', ') };
      const all = [
        await doctor(masters.urls, '--json'),
        await doctor([], '--masters-file', file, '--json'),
        await cli(['doctor', ...PATIENTLY, '--json'], { env }),
        // What is typed comes before what is set.
        await cli(['doctor', ...on(masters.urls), ...PATIENTLY, '--json'], {
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
  }, 60_000);

  it.each<[string, string[]]>([
    ['none', ['doctor']],
    ['a file that is not there', ['doctor', '--masters-file', '/nowhere/masters']],
    ['a URL that cannot be parsed', ['doctor', '--master', `redis://u:${PASSWORD}@host`]],
    ['another scheme', ['doctor', '--master', `http://u:${encoded}@host`]],
    ['one address twice', ['doctor', ...on([`redis://:${encoded}@localhost`, 'redis://LOCALHOST:6379/1'])]],
    ['a misspelled option', ['doctor', `--mastre=redis://u:${encoded}@host`]],
    ['an option after the URL', ['doctor', '--timeout', `redis://u:${encoded}@host`, '--master', 'redis://h']],
    ['no such command', [`redis://u:${encoded}@host`]],
    ['no command', []],
    ['a time limit that is none', ['doctor', '--master', 'redis://127.0.0.1:1', '--timeout', 'soon']],
  ])(
    '%s: is a misuse, and is told without credentials',
    async (_, args) => {
      const ended = await cli(args);
      expect(ended).toMatchObject({ status: 2, stdout: '' });
      expect(ended.stderr).toMatch(/^error: |^Usage: /);
      expectSilenceAbout(PASSWORD, ended);
    },
    60_000,
  );

  it('are explained by --help, for each command', async () => {
    const all = await cli(['--help']);
    expect(all.status).toBe(0);
    for (const name of ['doctor', 'inspect', 'list', 'release']) {
      expect(all.stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
      const { status, stdout } = await cli([name, '--help']);
      expect([status, stdout.split('\n')[0]]).toEqual([0, expect.stringContaining(`Usage: nestjs-redlock ${name}`)]);
      expect(stdout).toContain('--master <url>');
    }
  }, 60_000);
});
