import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeServer, Process, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

let clock: TestClock;
let servers: [FakeServer, FakeServer, FakeServer];
let process: Process;

beforeEach(async () => {
  clock = new TestClock();
  servers = threeServers(clock);
  for (const server of servers) server.mark();
  process = await new Process(clock, servers).connectAll();
  await clock.advance(3_000);
  sample(0);
  sample(1);
  sample(2);
  await clock.advance(1_000);
});
afterEach(() => process.guard.close());

/** The guard receives the time of a server with an answer. Returns whether the answer may count. */
function sample(index: number): boolean {
  return process.guard.sampled(process.links[index]!.identity!, clock.read(), servers[index]!.time);
}

describe('StepJudge', () => {
  it('judges the next answer, too, if a server whose clock has jumped does not answer the question about it', async () => {
    const [a] = servers;
    a.ahead += 9_000;
    a.isDown = true;
    expect(sample(0)).toBe(false);
    await clock.settle();
    await clock.advance(1_500);
    a.isDown = false;
    expect(sample(0)).toBe(false);
    await clock.settle();
    expect(a.marker?.reason).toMatch(/jumped/);
  });

  it('lets no grant of a server count while its step is judged', async () => {
    const [a] = servers;
    const identity = process.links[0]!.identity!;
    const { epoch } = identity;
    a.ahead += 9_000;
    expect(sample(0)).toBe(false);
    expect(identity.isQuarantined).toBe(true);
    expect(identity.epoch).toBeGreaterThan(epoch);
    expect(identity.quarantineAt(clock.read())).toMatchObject({ reason: 'its clock has moved' });
    await clock.settle();
  });

  it('ends the locks of this process once, however many servers show that its clocks stood still', async () => {
    for (const server of servers) server.ahead += 2_000;
    expect([sample(0), sample(1), sample(2)]).toEqual([false, false, false]);
    await clock.settle();
    await clock.advance(100);
    expect(process.lags).toHaveLength(1);
  });

  it('lets no grant count whose request was sent before the clocks of this process stood still', async () => {
    const [, b] = process.links;
    const { epoch } = b!.identity!;
    for (const server of servers) server.ahead += 2_000;
    sample(0);
    await clock.settle();
    await clock.advance(100);
    expect(process.lags).toHaveLength(1);
    expect(b!.identity!.epoch).toBeGreaterThan(epoch);
  });
});
