import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { driftOf, resolveSettings } from '../../../../lib/core/settings/settings.js';
import { EARLY_AFTER } from '../../../../lib/redis/guard/new-masters.js';
import type { MarkerChange } from '../../../../lib/redis/guard/marker.js';
import type { RestartGuard } from '../../../../lib/redis/guard/restart-guard.js';
import { type FakeServer, Process, threeServers } from '../../support/guarded-servers.js';
import { TestClock } from '../../support/test-clock.js';

/** How long a master waits if ttls are at most this long. */
const waitFor = (ttl: number): number => Math.ceil(ttl + driftOf(resolveSettings({}), ttl));
/** The last reading before the end of a quarantine may take place this much before it, in milliseconds. */
const LATE_BY = 250;
const LONGEST_WAIT = waitFor(30_000);

let clock: TestClock;
let servers: ReturnType<typeof threeServers>;
let processes: Process[];

beforeEach(() => {
  clock = new TestClock();
  servers = threeServers(clock);
  processes = [];
});
afterEach(() => {
  for (const { guard } of processes) guard.close();
});

function started(name = 'process', among: FakeServer[] = servers): Promise<Process> {
  const process = new Process(clock, among, { name });
  processes.push(process);
  return process.connectAll();
}

/** A process that has met servers whose data is known. */
function startedOnKnown(marker: MarkerChange = {}): Promise<Process> {
  for (const server of servers) server.mark(marker);
  return started();
}

/** For each server, the times after a moment at which it received a contact. */
const beatsSince = (moment: number): number[][] =>
  servers.map(({ beats }) => beats.filter(({ at }) => at > moment).map(({ at }) => at));

/** Acquires a lock, which a quorum of masters has to be able to grant. */
function hold(guard: RestartGuard): void {
  const attempt = guard.beginAttempt();
  expect(attempt).toBeDefined();
  expect(guard.confirm(attempt!)).toBe(true);
}

const reconnects = ({ links }: Process): number[] => links.map((link) => link.reconnects);

/** A process that has met servers whose data is known, and holds a lock. */
async function holding(): Promise<Process> {
  const process = await startedOnKnown();
  hold(process.guard);
  return process;
}

describe('A server whose data is unknown', () => {
  // Protocol 8.3
  it('waits for the largest ttl that was announced to the others', async () => {
    for (const server of servers) server.mark().announce(25_000);
    const process = await started();
    expect(process.votes).toEqual([true, true, true]);
    const [a] = servers;
    process.connect(a.restart());
    await clock.settle();
    expect(a.marker).toMatchObject({ run: a.run, replid: a.replid, maxTtl: 25_000, isVetoed: false });
    expect(a.marker!.from - a.time).toBe(waitFor(25_000));
    expect(process.votes).toEqual([false, true, true]);
    await clock.advance(waitFor(25_000) - 1);
    expect(process.votes[0]).toBe(false);
    await clock.advance(300);
    expect(process.votes[0]).toBe(true);
  });

  // Protocol 8.3
  it('stays unmarked while too few servers can be read for any vote', async () => {
    const process = await startedOnKnown();
    const [a, b, c] = servers;
    b.isDown = c.isDown = true;
    process.connect(a.restart());
    await clock.advance(2 * LONGEST_WAIT);
    expect(a.marker).toBeUndefined();
    b.isDown = false;
    process.connect(b);
    await clock.advance(300);
    expect(a.marker).toBeDefined();
  });

  // Protocol 8.3
  it('is marked after the longest wait if a minority does not answer, however often its data is found unknown meanwhile', async () => {
    const [a, b, c] = servers;
    c.isDown = true;
    const process = await started();
    const [link] = process.links;
    for (let waited = 0; waited < LONGEST_WAIT; waited += 1_000) {
      const answer = link!.hold();
      await clock.advance(1_000 - 50);
      // Another connection reports while the masters are read.
      process.connect(b);
      answer();
      await clock.advance(50);
    }
    await clock.advance(1_000);
    expect([a.marker, b.marker].map((marker) => marker?.isGuess)).toEqual([true, true]);
    await clock.advance(3_000);
    expect(process.votes).toEqual([true, true, false]);
  });

  // Protocol 8.3
  it('is marked at once if all servers answer and none has known data', async () => {
    await started();
    for (const server of servers) expect(server.marker!.from - server.time).toBe(LONGEST_WAIT);
  });

  // Protocol 8.4
  it('does not wait a second time for another process that meets it', async () => {
    const first = await startedOnKnown();
    const [a] = servers;
    first.connect(a.restart());
    await clock.advance(1_000);
    const { nonce, from } = a.marker!;
    await started('second');
    await clock.advance(1_000);
    expect(a.marker).toMatchObject({ nonce, from });
  });

  // Protocol 8.2
  it('votes after the longest wait on the clock of the process, however far ahead its `from` lies', async () => {
    for (const server of servers) server.mark();
    const [a] = servers;
    a.change({ from: a.time + 36_000_000, at: a.time + 36_000_000 - waitFor(10_000) });
    a.announce(10_000);
    const process = await started();
    await clock.advance(waitFor(10_000) - 300);
    expect(process.votes[0]).toBe(false);
    await clock.advance(1_000);
    expect(process.votes[0]).toBe(true);
    // The marker stays as it is: the clock of this process could be the wrong one.
    expect(a.marker!.from).toBeGreaterThan(a.time);
  });
});

// Protocol 8.5
describe('A process that holds a lock', () => {
  it('vetoes a server in the same step in which it marks the server', async () => {
    const process = await holding();
    process.connect(servers[0].restart());
    await clock.settle();
    const marked = servers[0].changes.filter(({ nonce, by }) => nonce !== undefined && by === 'process');
    expect(marked).toEqual([expect.objectContaining({ vetoed: 1 })]);
  });

  it('vetoes a server that another process marked', async () => {
    for (const server of servers) server.mark();
    const holder = await started('holder');
    const other = await started('other');
    hold(holder.guard);
    other.connect(servers[0].restart());
    await clock.settle();
    expect(servers[0].marker).toMatchObject({ isVetoed: false, writtenBy: 'other' });
    holder.connect(servers[0]);
    await clock.settle();
    expect(servers[0].marker).toMatchObject({ isVetoed: true, writtenBy: 'other' });
  });

  it('completes a contact at least every second, with each server in turn', async () => {
    const process = await startedOnKnown();
    hold(process.guard);
    const before = clock.now;
    await clock.advance(6_000);
    const beats = beatsSince(before);
    for (const own of beats) expect(own.length).toBeGreaterThanOrEqual(2);
    const all = beats.flat().sort((one, other) => one - other);
    for (const [index, at] of all.entries()) expect(at - (all[index - 1] ?? before)).toBeLessThanOrEqual(1_000);
  });

  it('does so for as long as it holds the lock', async () => {
    await holding();
    await clock.advance(30_000);
    const before = clock.now;
    await clock.advance(6_000);
    for (const own of beatsSince(before)) expect(own.length).toBeGreaterThanOrEqual(5);
  });

  it('goes on to the next server if one is cut off', async () => {
    const process = await startedOnKnown();
    servers[0].isDown = true;
    const before = clock.now;
    hold(process.guard);
    await clock.advance(6_000);
    const [none, ...others] = beatsSince(before);
    expect(none).toEqual([]);
    expect(others.flat().length).toBeGreaterThanOrEqual(6);
  });
});

describe('A server that does not answer', () => {
  /** The time limit for one answer of a server, in milliseconds. */
  const PATIENCE = 200;

  it('delays a veto by its time limit once, because it is read no second time before it answers', async () => {
    const process = await holding();
    const [a] = servers;
    const hanging = process.links[2]!;
    const answer = hanging.hold();
    const before = hanging.readings;
    a.restart().quarantine(waitFor(10_000));
    process.connect(a);
    await clock.advance(PATIENCE);
    expect(a.marker).toMatchObject({ isVetoed: true });
    await clock.advance(2_000);
    expect(hanging.readings - before).toBe(1);
    answer();
    await clock.advance(1_000);
    expect(hanging.readings - before).toBeGreaterThan(1);
  });
});

it('An attempt under way counts no longer when too few masters vote, and does not keep new ones from voting early', async () => {
  const process = await startedOnKnown();
  const attempt = process.guard.beginAttempt();
  expect(attempt).toBeDefined();
  for (const server of servers) server.fields = {};
  process.connect(servers[0]);
  await clock.settle();
  expect(process.guard.confirm(attempt!)).toBe(false);
  expect(servers.map(({ marker }) => marker?.isVetoed)).toEqual([false, false, false]);
  await clock.advance(3_000);
  expect(process.votes).toEqual([true, true, true]);
});

it('A process that meets one server after the other samples all clocks after each one, so that a step in the first second is judged', async () => {
  for (const server of servers) server.mark();
  const [a, b, c] = servers;
  const process = new Process(clock, servers);
  processes.push(process);
  for (const server of servers) {
    process.connect(server);
    await clock.advance(100);
  }
  expect([a, b, c].map(({ beats }) => beats.map(({ at }) => at))).toEqual([[0, 100, 200], [100, 200], [200]]);
  a.ahead = 1_000;
  expect(process.guard.sampled(process.links[0]!.identity!, clock.read(), a.time)).toBe(false);
  await clock.settle();
  expect(a.marker).toMatchObject({ isVetoed: true, reason: expect.stringContaining('its clock jumped forward') });
  expect(process.votes).toEqual([false, true, true]);
});

it('A process that holds nothing reads each clock every ten seconds, and sends nothing else', async () => {
  await startedOnKnown();
  await clock.advance(45_000);
  // The first one belongs to the check that follows a connection.
  for (const own of beatsSince(0)) expect(own.map((at) => at - own[0]!)).toEqual([0, 10_000, 20_000, 30_000]);
});

describe('A process during a quarantine', () => {
  async function readingsIn(milliseconds: number, act: (process: Process) => void = () => undefined): Promise<number> {
    for (const server of servers) server.mark();
    servers[0].quarantine(20_000);
    const process = await started();
    act(process);
    await clock.advance(1_000);
    const before = process.links[0]!.readings;
    await clock.advance(milliseconds);
    return process.links[0]!.readings - before;
  }

  it('reads the masters once a second if it holds nothing', async () =>
    await expect(readingsIn(8_000)).resolves.toBe(8));

  it('reads them four times a second while it holds a lock, because a new marker may need its veto', async () =>
    await expect(readingsIn(8_000, ({ guard }) => hold(guard))).resolves.toBe(32));

  it('reads them at the end of the quarantine, not up to a second later', async () => {
    await readingsIn(18_000);
    expect(processes[0]!.votes).toEqual([false, true, true]);
    await clock.advance(1_000 + LATE_BY);
    expect(processes[0]!.votes).toEqual([true, true, true]);
  });
});

describe('A process that holds a lock and hears from no server', () => {
  it('replaces the connections after a second, because they may be half-open', async () => {
    const process = await holding();
    await clock.advance(600);
    for (const link of process.links) link.isMute = true;
    await clock.advance(1_000);
    expect(reconnects(process)).toEqual([0, 0, 0]);
    await clock.advance(1_000);
    expect(reconnects(process)).toEqual([1, 1, 1]);
  });

  it('replaces those that fell silent one after the other, although the first answers again', async () => {
    const process = await holding();
    await clock.advance(600);
    for (let at = 0; at < 4_000; at += 100) {
      for (const link of process.links) if (link.reconnects > 0) link.isMute = false;
      if (at === 0) process.links[0]!.isMute = true;
      if (at === 700) for (const link of process.links.slice(1)) link.isMute = true;
      await clock.advance(100);
    }
    expect(reconnects(process)).toEqual([1, 1, 1]);
  });

  it('replaces a silent one beside a quarantined server, which answers and has no vote', async () => {
    for (const server of servers) server.mark();
    servers[0].quarantine(20_000);
    const process = await started();
    hold(process.guard);
    await clock.advance(1_000);
    Object.assign(process.links[2]!, { isMute: true, held: new Promise(() => undefined) });
    await clock.advance(3_000);
    expect(reconnects(process)).toEqual([0, 0, expect.any(Number)]);
    expect(reconnects(process)[2]).toBeGreaterThan(0);
  });

  it('keeps the connections as long as a quorum of the servers answers', async () => {
    const process = await holding();
    process.links[0]!.isMute = true;
    await clock.advance(5_000);
    expect(reconnects(process)).toEqual([0, 0, 0]);
  });
});

it('A quarantined server from which nothing arrives gets a new connection after ten seconds, and again ten seconds later', async () => {
  for (const server of servers) server.mark();
  servers[0].quarantine(60_000);
  const process = await started();
  process.links[0]!.held = new Promise(() => undefined);
  await clock.advance(9_000);
  expect(process.links[0]!.reconnects).toBe(0);
  await clock.advance(3_000);
  expect(process.links[0]!.reconnects).toBe(1);
  await clock.advance(10_000);
  expect(process.links[0]!.reconnects).toBe(2);
});

describe('The wait for a server whose data is unknown', () => {
  it.each<[string, (process: Process, server: FakeServer) => unknown]>([
    ['after a disconnect', (process, server) => process.links[servers.indexOf(server)]!.identity!.noteDisconnect()],
    ['with another run of the server', (_, server) => server.restart()],
  ])('begins anew %s, because more may have been lost', async (_, happens) => {
    const [a, b, c] = servers;
    c.isDown = true;
    const process = await started('process', [a, b, c]);
    await clock.advance(20_000);
    expect([a.marker, b.marker]).toEqual([undefined, undefined]);
    for (const server of [a, b]) {
      happens(process, server);
      process.connect(server);
    }
    await clock.advance(LONGEST_WAIT - 10_000);
    expect([a.marker, b.marker]).toEqual([undefined, undefined]);
  });

  it('begins anew for a server that has not answered for a while, because another process may have let it vote', async () => {
    const [a, b, c] = servers;
    c.isDown = true;
    const process = await started('process', [a, b, c]);
    await clock.advance(LONGEST_WAIT - 5_000);
    const answer = process.links[0]!.hold();
    await clock.advance(5_000);
    answer();
    await clock.advance(10_000);
    expect(process.votes).toEqual([false, true, false]);
    await clock.advance(LONGEST_WAIT);
    expect(process.votes).toEqual([true, true, false]);
  });

  it('goes on when only the identity of the server is checked again', async () => {
    const [a, b, c] = servers;
    c.isDown = true;
    const process = await started('process', [a, b, c]);
    for (let i = 0; i < LONGEST_WAIT + 1_000; i += 1_000) {
      await clock.advance(1_000);
      for (const server of [a, b]) process.connect(server);
    }
    await clock.advance(1_000);
    expect([a.marker, b.marker]).not.toContain(undefined);
  });
});

// Protocol 8.6
describe('Servers that are all new', () => {
  it('vote after two and a half seconds', async () => {
    const process = await started();
    await clock.advance(2_400);
    expect(process.votes).toEqual([false, false, false]);
    await clock.advance(600);
    expect(process.votes).toEqual([true, true, true]);
  });

  it('do so while processes wait for a lock', async () => {
    const process = await started();
    expect(process.guard.beginAttempt()).toBeUndefined();
    await clock.advance(3_000);
    expect(process.votes).toEqual([true, true, true]);
    expect(process.guard.beginAttempt()).toBeDefined();
  });

  it('wait until the end if one is vetoed', async () => {
    const process = await started();
    await clock.advance(1_000);
    servers[1].change({ vetoed: 1 });
    await clock.advance(LONGEST_WAIT - 1_500);
    expect(process.votes).toEqual([false, false, false]);
  });

  it.each([
    ['loses its data once more', (server: FakeServer, process: Process) => process.connect(server.restart())],
    ['gets another marker', (server: FakeServer) => server.change({ nonce: 'another' })],
  ])('begin anew if one %s', async (_, change) => {
    const process = await started();
    await clock.advance(2_000);
    change(servers[1], process);
    await clock.advance(2_400);
    expect(process.votes).toEqual([false, false, false]);
  });

  it('wait until the end if there are only two', async () => {
    const process = await started('process', servers.slice(0, 2));
    await clock.advance(LONGEST_WAIT - 500);
    expect(process.votes).toEqual([false, false]);
  });

  it('vote within 3 s of the start of each of six processes that start one after the other', async () => {
    const starts: number[] = [];
    for (let i = 0; i < 6; i++) {
      starts.push(clock.now);
      await started(`process ${i}`);
      await clock.advance(400);
    }
    await clock.advance(3_000);
    const voted = processes.map(({ links }) => links.map(({ votedAt = Infinity }) => votedAt));
    const [first = 0] = starts;
    // Processes that start later delay no vote: the first one counts as soon as none can have objected.
    expect(Math.min(...voted.flat())).toBe(first + EARLY_AFTER);
    for (const [i, start] of starts.entries()) {
      // 2.5 s for objections, and one reading.
      expect(Math.max(...voted[i]!) - start).toBeLessThan(3_000);
      hold(processes[i]!.guard);
    }
  });

  it('do not vote early if one of the servers has voted before', async () => {
    servers[0].mark();
    const process = await started();
    await clock.advance(8_000);
    expect(process.votes).toEqual([true, false, false]);
  });
});

describe('permit', () => {
  it('cuts a ttl that could not be announced to one server, with one warning', async () => {
    const { guard, cuts } = await startedOnKnown({ known: 10_000 });
    servers[2].isDown = true;
    expect(await guard.announceTtl(20_000)).toBe(10_000);
    await clock.advance(5_000);
    expect(await guard.announceTtl(20_000)).toBe(10_000);
    expect(cuts).toEqual([[20_000, 10_000, ['c']]]);
    servers[2].isDown = false;
    await clock.advance(5_000);
    expect(await guard.announceTtl(20_000)).toBe(20_000);
  });
});

describe('RestartGuard', () => {
  it('ignores a report that was read before newer information arrived', async () => {
    const process = await startedOnKnown();
    const [a, b] = servers;
    await clock.advance(1_000);
    // One round of reading begins with the old marker of one server, and waits for that answer.
    let answer = (): void => undefined;
    process.links[0]!.held = new Promise((resolve) => (answer = resolve));
    process.connect(b.restart());
    await clock.settle();
    process.links[0]!.held = undefined;
    process.connect(a.restart().mark({ from: a.time + 20_000 }));
    answer();
    await clock.settle();
    // It did not vote in between either: it began to vote when this process connected, and has not begun again since.
    expect([process.votes[0], process.links[0]!.votedAt]).toEqual([false, 0]);
  });

  it('leaves no timer behind', async () => {
    const process = await holding();
    await clock.advance(1_000);
    expect(clock.pendingTimers).toBeGreaterThan(0);
    process.guard.close();
    await clock.settle();
    expect(clock.pendingTimers).toBe(0);
  });

  it('starts no timer after it was closed', async () => {
    const process = await startedOnKnown();
    process.guard.close();
    hold(process.guard);
    await clock.settle();
    expect(clock.pendingTimers).toBe(0);
  });

  it('schedules nothing if it watches no server', () => {
    const process = new Process(clock, []);
    expect([process.guard.beginAttempt(), clock.pendingTimers]).toEqual([undefined, 0]);
  });
});

// Protocol 10.2
it.each([
  [true, 'are the first ones beside a cluster that is new, too'],
  [false, 'are not the first ones beside a cluster that has data'],
])('New masters (%s) %s', async (isNew) => {
  const process = new Process(clock, servers, { name: 'process' });
  processes.push(process);
  process.guard.addCluster({ votes: () => true, isNew: () => isNew });
  await process.connectAll();
  await clock.advance(EARLY_AFTER + 1_000);
  expect(servers.map(({ marker }) => marker?.isFirst)).toEqual([isNew, isNew, isNew]);
});

// Protocol 8.5
describe('A holder', () => {
  it('vetoes a marker once that looks young, of a master that votes for it', async () => {
    for (const server of servers) server.mark();
    const [, , c] = servers;
    c.change({ at: c.time + 3_600_000, from: c.time + 3_610_000 });
    const { links, guard } = await started();
    await clock.advance(12_000);
    expect(links.map(({ identity }) => identity!.votes)).toEqual([true, true, true]);
    hold(guard);
    await clock.advance(1_000);
    const { readings } = links[2]!;
    await clock.advance(10_000);
    expect([c.marker!.isVetoed, links[2]!.readings - readings]).toEqual([true, 0]);
  });

  it('reads no masters again and again because a young one is dead', async () => {
    const process = await startedOnKnown();
    const [a] = servers;
    process.connect(a.restart());
    await clock.advance(1_000);
    a.isDown = true;
    hold(process.guard);
    await clock.advance(5_000);
    const { readings } = process.links[1]!;
    await clock.advance(10_000);
    expect(process.links[1]!.readings).toBe(readings);
  });
});

describe('A master that refuses its marker', () => {
  let process: Process;

  beforeEach(async () => {
    process = await startedOnKnown();
    Object.assign(process.links[0]!, { mark: () => Promise.resolve(undefined), markRefusal: 'NOPERM' });
    process.connect(servers[0].restart());
    await clock.advance(2_000);
    // An operator trusts it.
    servers[0].mark();
    await clock.advance(2_000);
  });

  it('is reported, and so is its vote when an operator trusts it', () => {
    expect(process.votes[0]).toBe(true);
    expect(process.events).toEqual(['a refuses', 'a votes again']);
  });

  it('is reported anew when it loses its data once more', async () => {
    process.connect(servers[0].restart());
    await clock.advance(2_000);
    expect(process.events).toEqual(['a refuses', 'a votes again', 'a refuses']);
  });
});
