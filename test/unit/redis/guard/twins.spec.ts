import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type FakeServer, Process, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

const TTL = 10_000;

// Protocol 8.10
describe('An address that leads to the server of another master', () => {
  let clock: TestClock;
  let servers: [FakeServer, FakeServer, FakeServer];
  let process: Process;

  beforeEach(async () => {
    clock = new TestClock();
    servers = threeServers(clock);
    for (const server of servers) server.mark({ known: TTL });
    process = new Process(clock, servers, { ttl: TTL, maxTtl: 3 * TTL });
    await process.connectAll();
    await receive(10);
  });

  afterEach(() => process.guard.close());

  /** The address of the first server leads to the second one. Its connection is another one, unless it is kept. */
  function leadAToB({ isKept = false } = {}): void {
    const [a, b] = servers;
    Object.assign(a, { run: b.run, replid: b.replid, fields: b.fields, ahead: b.ahead });
    if (!isKept) process.connect(a);
  }

  function sample(index: number): void {
    const { identity } = process.links[index]!;
    const { isDown, marker, time } = servers[index]!;
    if (!isDown && marker?.nonce === identity!.nonce) process.guard.sampled(identity!, clock.read(), time);
  }

  async function receive(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1_000);
      servers.forEach((_, index) => sample(index));
    }
    await clock.settle();
  }

  it('lets no masters vote early: not all of them are new', async () => {
    const [a, b, c] = servers;
    for (const server of [b, c]) server.restart();
    leadAToB();
    for (const server of [b, c]) process.connect(server);
    await clock.advance(TTL - 1_000);
    expect(process.votes.slice(1)).toEqual([false, false]);
    expect(a.fields).toBe(b.fields);
  });

  it('does not take the step of a clock for a standstill of this process, because two addresses show it', async () => {
    const [a, b] = servers;
    leadAToB();
    await receive(10);
    for (const server of [a, b]) server.ahead += 25_000;
    sample(1);
    await receive(2);
    expect(process.lags).toEqual([]);
    expect(b.marker?.reason).toMatch(/jumped/);
  });

  it('has not heard of a larger ttl: that server may not have, either', async () => {
    leadAToB();
    const permitted = process.guard.announceTtl(2 * TTL);
    await clock.advance(500);
    expect(await permitted).toBe(TTL);
    expect(process.cuts).toEqual([[2 * TTL, TTL, ['b']]]);
  });

  it('is reported when only a reading shows it, so that one server does not vote twice', async () => {
    const onVoting = jest.spyOn(process.links[0]!, 'onVoting');
    leadAToB({ isKept: true });
    // A quarantined master is a reason to read them all.
    process.connect(servers[2].restart());
    await receive(2);
    expect(process.links[0]!.identity!.nonce).toBe(servers[1].marker?.nonce);
    expect(onVoting).toHaveBeenCalled();
  });

  // Protocol 10.2
  it('hides no loss of data: this process objects when that server is flushed and marked by another one', async () => {
    const [a, b] = servers;
    leadAToB();
    await receive(1);
    a.fields = b.fields = {};
    b.quarantine(TTL, { generation: `new@${b.time}`, first: 'empty', guess: 1 });
    for (const server of [a, b]) process.connect(server);
    await receive(2);
    expect(b.marker!.wasEmpty).toBe(false);
  });

  describe('and is lost, or leads back', () => {
    beforeEach(async () => {
      leadAToB();
      await receive(2);
    });

    it('takes no place among the judges of a clock from the server that answers', async () => {
      servers[0].isDown = true;
      await expectAccused(2);
    });

    it('voids no attempt on the others while it does not vote', async () => {
      const [a] = servers;
      Object.assign(a, { run: 'a:run', replid: 'a:history', fields: {} });
      a.restart();
      Object.assign(process.links[0]!, { mark: () => Promise.resolve(undefined), markRefusal: 'OOM' });
      process.connect(a);
      await receive(2);
      expect(process.votes).toEqual([false, true, true]);
      expect(await countedAttempts(10)).toBe(10);
    });
  });

  /** Sets the clock of a server forward. */
  async function expectAccused(index: 0 | 2): Promise<void> {
    await receive(2);
    servers[index].ahead += 25_000;
    sample(index);
    await receive(2);
    expect(process.lags).toEqual([]);
    expect(servers[index].marker?.reason).toMatch(/jumped/);
  }

  /** How many of so many attempts count that last as long as a reading. */
  async function countedAttempts(attempts: number): Promise<number> {
    let counted = 0;
    for (let i = 0; i < attempts; i++) {
      const attempt = process.guard.beginAttempt();
      await clock.advance(300);
      if (!process.guard.confirm(attempt!)) continue;
      counted++;
      process.guard.disengage();
    }
    return counted;
  }

  describe('is unlike a declared master whose disk is a copy of that of another one: it', () => {
    beforeEach(async () => {
      const [a, b] = servers;
      process.guard.close();
      Object.assign(b, { fields: { ...a.fields } });
      process = new Process(clock, servers, { ttl: TTL, maxTtl: 3 * TTL });
      for (const link of process.links) link.isDurable = true;
      await process.connectAll();
      await receive(10);
      expect(b.marker).toMatchObject({ nonce: a.marker!.nonce, run: b.run });
    });

    it('confirms a ttl', async () => {
      const permitted = process.guard.announceTtl(2 * TTL);
      await clock.advance(500);
      expect(await permitted).toBe(2 * TTL);
    });

    it('judges the clock of that other one', async () => {
      servers[2].isDown = true;
      await expectAccused(0);
    });

    it('is known by its own data: this process objects to later data there as the first', async () => {
      const [a, b, c] = servers;
      a.isDown = true;
      const fresh = { first: 'empty', guess: 1 };
      for (const server of [b, c]) server.restart().quarantine(TTL, { ...fresh, generation: `new@${server.time}` });
      for (const server of [b, c]) process.connect(server);
      await receive(4);
      expect([b, c].map(({ marker }) => marker!.wasEmpty)).toEqual([false, false]);
    });

    it('counts among those that vote', async () => {
      process.connect(servers[2].restart());
      await receive(2);
      expect(process.votes).toEqual([true, true, false]);
      expect(await countedAttempts(10)).toBe(10);
    });
  });
});

// Protocol 10.2
it('Addresses that lead to the servers of each other for a moment clear nothing: no data was lost', async () => {
  const clock = new TestClock();
  const servers = threeServers(clock);
  for (const server of servers) server.mark({ known: TTL, first: 1, generation: `${server.name}@1` });
  const process = new Process(clock, servers, { ttl: TTL, maxTtl: TTL });
  await process.connectAll();
  const [a, b] = servers;
  for (let swaps = 0; swaps < 2; swaps++) {
    const { run, replid, fields } = a;
    Object.assign(a, { run: b.run, replid: b.replid, fields: b.fields });
    Object.assign(b, { run, replid, fields });
    for (const server of [a, b]) process.connect(server);
    await clock.advance(4_000);
  }
  expect(process.votes).toEqual([true, true, true]);
  expect(servers.map(({ marker }) => marker!.isFirst)).toEqual([true, true, true]);
  process.guard.close();
});
