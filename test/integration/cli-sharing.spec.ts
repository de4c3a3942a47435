import { describe, expect, it } from '@jest/globals';
import { cli, on } from '../support/cli.js';
import { command } from '../support/command.js';
import { leftovers } from '../support/leftovers.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';

/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
const SHARED = { mode: 'shared', wait: 0 } as const;

interface Listed {
  readonly resource: string;
  readonly slot?: number;
  readonly state: string;
  readonly sharedBy?: number;
  readonly heldOn: readonly string[];
}

async function listed(urls: readonly string[], ...args: string[]): Promise<readonly Listed[]> {
  const { stdout } = await cli(['list', ...args, ...on(urls), ...PATIENTLY, '--json']);
  return (JSON.parse(stdout) as { readonly locks: readonly Listed[] }).locks;
}

describe('inspect', () => {
  it('shows by how many holders a lock is shared', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls);
    const [one, two] = [
      await contender.acquire('prices', '30s', SHARED),
      await contender.acquire('prices', '30s', SHARED),
    ];
    const inspect = ['inspect', 'prices', ...on(masters.urls), ...PATIENTLY];
    const shared = await cli(inspect);
    expect(shared).toMatchObject({ status: 0, stderr: '' });
    expect(shared.stdout).toMatch(/^shared by 2 holders$/m);
    expect(shared.stdout.match(/held, shared by 2 holders, \d+\.\d s/g)).toHaveLength(3);
    await one.release();
    expect(JSON.parse((await cli([...inspect, '--json'])).stdout)).toMatchObject({ state: 'held', sharedBy: 1 });
    await two.release();
    expect((await cli(inspect)).stdout).toContain('"prices" is free');
    for (const { port } of masters.servers) expect(await leftovers(port)).toEqual([]);
  }, 60_000);

  it('shows which permits of a name are taken', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls);
    const held = await contender.acquire('stripe', '30s', { permits: 3, wait: 0 });
    const inspect = ['inspect', 'stripe', ...on(masters.urls), ...PATIENTLY, '--permits'];
    const { status, stdout } = await cli([...inspect, '3']);
    expect(status).toBe(0);
    expect(stdout).toContain('"stripe": 1 of 3 permits taken');
    expect(stdout).toMatch(new RegExp(`${held.slot} +│ held +│ \\d+\\.\\d s +│ 3 of 3`));
    const json = JSON.parse((await cli([...inspect, '3', '--json'])).stdout) as { slots: { state: string }[] };
    expect(json).toMatchObject({ resource: 'stripe', permits: 3, taken: 1, waiting: 0 });
    expect(json.slots.map(({ state }) => state)).toEqual(
      [0, 1, 2].map((slot) => (slot === held.slot ? 'held' : 'free')),
    );
    expect(json.slots.map((slot) => (slot as { slot?: number }).slot)).toEqual([0, 1, 2]);
    const wrong = await cli([...inspect, 'many']);
    expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('permits must be an integer from 1') });
  }, 60_000);
});

describe('inspect of a name with permits', () => {
  it('shows those that are taken, without their number, and not only that the lock is free', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls);
    const inspect = ['inspect', 'stripe', ...on(masters.urls), ...PATIENTLY];
    expect((await cli(inspect)).stdout).not.toContain('permit');
    expect(JSON.parse((await cli([...inspect, '--json'])).stdout)).not.toHaveProperty('takenPermits');
    await contender.acquire('stripe', '30s', { permits: 2, wait: 0 });
    const two = await contender.acquire('stripe', '30s', { permits: 2, wait: 0 });
    const { status, stdout, stderr } = await cli(inspect);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('"stripe" is free (held on 0 of 3 masters');
    expect(stdout).toMatch(/#0 +│ held +│ \d+\.\d s +│ 3 of 3/);
    expect(stdout).toContain('no lock of this name, but 2 permits of "stripe" are taken: #0, #1');
    const json = JSON.parse((await cli([...inspect, '--json'])).stdout) as object;
    expect(json).toMatchObject({ state: 'free', takenPermits: { waiting: 0, slots: [{ slot: 0 }, { slot: 1 }] } });
    await two.release();
    await contender.acquire('stripe', '30s');
    expect((await cli(inspect)).stdout).toContain(
      `beside the lock, 1 permit of "stripe" is taken: #${two.slot === 0 ? 1 : 0}`,
    );
    const fewer = await cli([...inspect, '--permits', '1']);
    expect(fewer.stderr).toContain('note: "stripe" is held as a lock: inspect it without --permits');
  }, 60_000);

  it('names permits beyond the number that was given, and a lock of that name', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls);
    for (let count = 0; count < 4; count++) await contender.acquire('stripe', '30s', { permits: 4, wait: 0 });
    await contender.acquire('prices', '30s', SHARED);
    const options = [...on(masters.urls), ...PATIENTLY];
    const few = await cli(['inspect', 'stripe', ...options, '--permits', '2']);
    expect(few.stdout).toContain('"stripe": 2 of 2 permits taken');
    expect(few.stderr).toBe(
      'note: more permits of this name are taken: #2, #3. Give the number that the application gives\n',
    );
    const json = await cli(['inspect', 'stripe', ...options, '--permits', '2', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ taken: 2, beyond: [2, 3] });
    const lock = await cli(['inspect', 'prices', ...options, '--permits', '5']);
    expect(lock.stdout).toContain('"prices": 0 of 5 permits taken');
    expect(lock.stderr).toBe('note: "prices" is held as a lock, shared by 1 holder: inspect it without --permits\n');
  }, 60_000);
});

describe('list', () => {
  it('shows shared locks and permits beside exclusive locks', async () => {
    await using masters = await startMasters(3);
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

    const all = await listed(masters.urls);
    expect(all.map(({ resource, slot, state, sharedBy }) => [resource, slot, state, sharedBy])).toEqual([
      ['eu:stripe', 0, 'held', undefined],
      ['order:1', undefined, 'held', undefined],
      ['prices', undefined, 'held', 1],
      ['stripe', 0, 'held', undefined],
      ['stripe', 1, 'held', undefined],
    ]);
    expect(all.every(({ heldOn }) => heldOn.length === 3)).toBe(true);
    // The pattern is that of the name, and not of the key, in which the number precedes the name.
    expect((await listed(masters.urls, 'stripe')).map(({ resource }) => resource)).toEqual(['stripe', 'stripe']);
    expect((await listed(masters.urls, '*[o-s]tr?pe')).map(({ slot }) => slot)).toEqual([0, 0, 1]);
    const { stdout } = await cli(['list', ...on(masters.urls), ...PATIENTLY]);
    expect(stdout).toMatch(/"stripe" #1 +│ held/);
    expect(stdout).toMatch(/"prices" +│ held .*shared by 1 holder/);
    expect(stdout).toContain('2 locks with 2 holders, 3 permits');
    expect(stdout).not.toContain('\0');
  }, 60_000);
});

describe('release', () => {
  it('takes a permit away from its holder, and leaves the others alone', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const [one, two] = [
      await contender.acquire('stripe', '30s', { permits: 2, wait: 0 }),
      await contender.acquire('stripe', '30s', { permits: 2, wait: 0 }),
    ];
    const release = ['release', 'stripe', '--yes', ...on(masters.urls), ...PATIENTLY];
    const ended = await cli([...release, '--permit', String(one.slot)]);
    expect(ended.status).toBe(0);
    expect(ended.stdout).toContain(` released "stripe" #${one.slot} (revoked, `);
    await expect(one.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', cause: 'owner-changed' });
    await expect(two.extend()).resolves.toBeUndefined();
    const json = await cli([...release, '--at-once', '--json', '--permit', String(two.slot)]);
    expect(JSON.parse(json.stdout)).toMatchObject({ resource: 'stripe', slot: two.slot, released: true });
    await using next = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    expect((await next.acquire('stripe', '30s', { permits: 2, wait: 0 })).slot).toBe(two.slot);
  }, 60_000);

  it('names the permits of a name whose lock is not held', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls);
    await contender.acquire('stripe', '30s', { permits: 1, wait: 0 });
    const release = ['release', 'stripe', '--yes', ...on(masters.urls), ...PATIENTLY];
    const hint = 'the permit #0 of this name is taken, and --permit 0 would release that one';
    for (const [args, name] of [
      [[], '"stripe"'],
      [['--permit', '7'], '"stripe" #7'],
    ] as const) {
      const { status, stdout } = await cli([...release, ...args]);
      expect([status, stdout]).toEqual([1, `${name} is not held, so nothing was released: ${hint}\n`]);
    }
  }, 60_000);

  it('refuses to take a shared lock away, and explains what ends it', async () => {
    await using masters = await startMasters(3);
    await using contender = await Contender.on(masters.urls, { masterTimeout: 1_000 });
    const lock = await contender.acquire('prices', '30s', SHARED);
    for (const args of [[], ['--at-once']]) {
      const ended = await cli(['release', 'prices', '--yes', ...args, ...on(masters.urls), ...PATIENTLY]);
      expect(ended).toMatchObject({ status: 1, stdout: '' });
      expect(ended.stderr).toMatch(
        /^"prices" is shared by 1 holder, and a shared lock cannot be taken away\. A holder that has crashed ends by itself, in at most \d+\.\d s; /,
      );
    }
    await expect(lock.extend()).resolves.toBeUndefined();
    const json = await cli(['release', 'prices', '--yes', '--json', ...on(masters.urls), ...PATIENTLY]);
    expect(JSON.parse(json.stdout)).toMatchObject({ resource: 'prices', released: false });
  }, 60_000);

  it('refuses what is not the slot of a permit', async () => {
    const ended = await cli(['release', 'stripe', '--permit', '-1', '--master', 'redis://127.0.0.1:1']);
    expect(ended).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--permit must be the slot of a permit'),
    });
  }, 60_000);
});
