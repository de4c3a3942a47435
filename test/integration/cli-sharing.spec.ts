import { describe, expect, it, jest } from '@jest/globals';
import { command } from '../support/command.js';
import { leftovers } from '../support/leftovers.js';
import { Contender } from '../support/redlocks.js';
import { commandLineOn } from './support/command-line.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const SHARED = { mode: 'shared', wait: 0 } as const;

interface Listed {
  readonly resource: string;
  readonly slot?: number;
  readonly state: string;
  readonly sharedBy?: number;
  readonly heldOn: readonly string[];
}

const masters = sharedMasters(3);
const { run, json } = commandLineOn(() => masters.urls);

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
    expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('permits must be an integer from 1') });
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

describe('list', () => {
  it('shows shared locks and permits beside exclusive locks', async () => {
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
    const ended = await run('release', 'stripe', '--permit', '-1');
    expect(ended).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--permit must be the slot of a permit'),
    });
  });
});
