import { describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import { RedlockConfigError } from '../../../lib/settings/config.error.js';
import { CircuitBreakerMaster } from '../../../lib/masters/circuit-breaker-master.js';
import { type MasterState, type MasterStatus, quorumWithin, summarize } from '../../../lib/operate/status.js';
import { QuorumWatch } from '../../../lib/masters/connect.js';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { Rig } from '../support/rig.js';
import {
  cutOff,
  granted,
  hangs,
  held,
  obeysAfter,
  only,
  refused,
  says,
  ScriptedMaster,
  unreachable,
} from '../support/scripted-master.js';
import { down, quarantined, statusWith, summaryOf, voting } from '../support/statuses.js';
import { TestClock } from '../support/test-clock.js';

const never = new Promise<void>(() => {});
const isDown = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'connect ECONNREFUSED', sent: false };
};
const isWrong = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'WRONGPASS', sent: false, isPermanent: true };
};
const isHung = (master: ScriptedMaster): void => {
  master.trouble = { kind: 'unreachable', reason: 'still connecting', sent: false };
  master.connected = never;
};

function start(masters: number, bad: Record<number, (master: ScriptedMaster) => void>, timeout = 5_000) {
  const rig = new Rig({ masters });
  for (const [index, spoil] of Object.entries(bad)) spoil(rig.masters[Number(index)]!);
  return { rig, connected: rig.follow(rig.redlock.masters.connect(timeout)) };
}

describe('connect()', () => {
  it.each<[Parameters<typeof start>[1], string[]]>([
    [{}, []],
    [{ 1: isDown }, ['m2']],
  ])('resolves at once when a quorum is ready, with the problems of the others: %p', async (bad, problems) => {
    const { rig, connected } = start(3, bad);
    await rig.clock.settle();
    const answer = rig.masters[1]!.trouble;
    expect(connected).toMatchObject({ at: 0, value: problems.map((master) => ({ master, answer })) });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('waits a second for a hung minority', async () => {
    const { rig, connected } = start(3, { 2: isHung });
    await rig.clock.advance(999);
    expect(connected.state).toBe('pending');
    await rig.clock.advance(1);
    expect(connected.value!.map(({ master }) => master)).toEqual(['m3']);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it.each([
    [1, 1],
    [2, 1],
    [5, 3],
  ])('of %i masters fails when %i are down, and reports which and why', async (masters, down) => {
    const bad = Object.fromEntries(Array.from({ length: down }, (_, i) => [i, isDown]));
    const { rig, connected } = start(masters, bad, 3_000);
    await rig.clock.advance(3_000);
    expect(connected).toMatchObject({ at: 3_000, reason: expect.any(QuorumUnavailableError) });
    const { message } = connected.reason as Error;
    const quorum = Math.floor(masters / 2) + 1;
    const noun = masters === 1 ? 'master' : 'masters';
    const each = Array.from({ length: down }, (_, i) => `m${i + 1}: unreachable, connect ECONNREFUSED`).join('; ');
    expect(message).toBe(`cannot start within 3000 ms: ${quorum} of ${masters} ${noun} must vote (${each})`);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('fails at once if waiting cannot help for a majority, and gives the others a second', async () => {
    const wrong = start(3, { 0: isWrong, 1: isWrong });
    await wrong.rig.clock.settle();
    expect(wrong.connected.at).toBe(0);
    expect((wrong.connected.reason as Error).message).toBe(
      'cannot start: 2 of 3 masters must vote (m1: WRONGPASS; m2: WRONGPASS)',
    );
    const hanging = start(3, { 0: isWrong, 1: isWrong, 2: isHung });
    await hanging.rig.clock.advance(999);
    expect(hanging.connected.state).toBe('pending');
    await hanging.rig.clock.advance(1);
    expect(String(hanging.connected.reason)).toContain('m3: unreachable, still connecting');
    for (const { rig } of [wrong, hanging]) expect(rig.clock.pendingTimers).toBe(0);
  });

  it.each([
    ['is down, too', isDown],
    ['has a problem that waiting cannot end', isWrong],
  ])('waits for a majority that comes up late, while another master %s', async (_, spoil) => {
    const { rig, connected } = start(3, { 0: spoil, 1: isDown });
    await rig.clock.advance(2_000);
    expect(connected.state).toBe('pending');
    rig.masters[1]!.becomeReady();
    await rig.clock.settle();
    expect(connected.at).toBe(2_000);
    expect(connected.value!.map(({ master }) => master)).toEqual(['m1']);
  });

  it('continues to wait if the majority is gone when the second for the minority ends', async () => {
    const { rig, connected } = start(3, { 2: isHung });
    await rig.clock.advance(500);
    isDown(rig.masters[0]!);
    await rig.clock.advance(1_000);
    expect(connected.state).toBe('pending');
    rig.masters[0]!.becomeReady();
    await rig.clock.advance(1_000);
    expect(connected.at).toBe(2_500);
  });
});

describe('probe()', () => {
  it.each([
    [50, 1_000],
    [1_500, 1_500],
  ])('waits for hung masters for a second, or masterTimeout if that is longer: %i ms', async (masterTimeout, limit) => {
    const rig = new Rig({ masterTimeout });
    rig.script(2, hangs);
    const probe = await rig.outcomeAfter(2_000, rig.redlock.masters.probe());
    expect(probe.at).toBe(limit);
    const silent = { state: 'silent', reason: 'no answer in time' };
    expect(probe.value).toMatchObject({ canVote: false, masters: [silent, silent, { state: 'voting', latency: 0 }] });
    expect(probe.value?.masters[0]).not.toHaveProperty('latency');
  });

  it.each([
    ['is not answered', hangs],
    ['is cut off', says(cutOff)],
  ])('counts a master that answers calls, although the probe itself %s', async (_, behaviour) => {
    const rig = new Rig({ masters: 1 });
    rig.scriptAll(
      only('probe', (request, reply, master) => master.clock.schedule(500, () => behaviour(request, reply, master))),
    );
    const probe = rig.follow(rig.redlock.masters.probe());
    await rig.clock.advance(100);
    expect(await rig.outcomeOf(rig.acquire('a', { wait: 0 }))).toMatchObject({ state: 'fulfilled' });
    await rig.clock.advance(1_000);
    expect(probe.value).toMatchObject({ canVote: true, masters: [{ state: 'voting' }] });
  });

  it('reports why a master cannot vote, with a known reason first, and the latency in milliseconds', async () => {
    const rig = new Rig({ masters: 5 });
    const [a, b, c, d, e] = rig.masters;
    a!.behaviour = says(refused);
    b!.behaviour = says(cutOff);
    c!.trouble = unreachable;
    c!.behaviour = says(cutOff);
    d!.known = { version: '7.2.4', quarantine: { reason: 'waits 0.9 s after a restart', remaining: 900 } };
    e!.behaviour = obeysAfter(7);
    const probe = await rig.outcomeAfter(10, rig.redlock.masters.probe());
    expect(probe.value).toEqual({
      instance: 'unnamed',
      quorum: 3,
      canVote: false,
      masters: [
        { master: 'm1', state: 'refused', reason: 'NOAUTH Authentication required.' },
        { master: 'm2', state: 'down', reason: 'connection lost' },
        { master: 'm3', state: 'down', reason: 'connection refused' },
        {
          master: 'm4',
          state: 'quarantined',
          reason: 'waits 0.9 s after a restart',
          remaining: 900,
          version: '7.2.4',
          latency: 0,
        },
        { master: 'm5', state: 'voting', latency: 7 },
      ],
    });
  });

  it('writes a key that no resource can have', async () => {
    const rig = new Rig();
    await rig.redlock.masters.probe();
    expect(rig.masters[0]!.requests('probe')[0]!.keys).toEqual(['lock:\0probe']);
  });
});

function watching(...states: MasterState[]) {
  const seen: unknown[] = [];
  let present = statusWith(...states);
  const watch = new QuorumWatch(() => present, {
    firstStatus: ({ canVote }) => seen.push(['first', canVote]),
    quorumLost: (voting, masters, status) => seen.push(['lost', voting, masters, status]),
    quorumRestored: (voting, masters, status) => seen.push(['restored', voting, masters, status]),
  });
  return { watch, seen, turnTo: (...next: MasterState[]) => (present = statusWith(...next)) };
}

describe('QuorumWatch', () => {
  it('reports nothing before the first status, and that only once', () => {
    const { watch, seen, turnTo } = watching('down', 'down', 'down');
    watch.masterLost();
    turnTo('voting', 'voting', 'voting');
    watch.masterFound();
    expect(seen).toEqual([]);
    watch.begin();
    watch.begin();
    expect(seen).toEqual([['first', true]]);
  });

  it('reports a lost quorum and its return once each, with the status', () => {
    const { watch, seen, turnTo } = watching('voting', 'voting', 'down');
    watch.begin();
    watch.masterLost();
    const lost = turnTo('voting', 'silent', 'down');
    watch.masterSilent();
    watch.masterLost();
    const restored = turnTo('voting', 'voting', 'down');
    watch.masterAnswersAgain();
    watch.check();
    expect(seen.slice(1)).toEqual([
      ['lost', 1, 3, lost],
      ['restored', 2, 3, restored],
    ]);
  });

  it('reports a quorum that votes after a first status without one', () => {
    const { watch, seen, turnTo } = watching('quarantined', 'quarantined', 'quarantined');
    watch.begin();
    turnTo('voting', 'voting', 'quarantined');
    watch.masterVotesAgain();
    expect(seen).toEqual([
      ['first', false],
      ['restored', 2, 3, expect.objectContaining({ canVote: true })],
    ]);
  });
});

it.each<[string, MasterStatus[], number | undefined]>([
  ['is zero while a quorum votes', [voting('a'), voting('b'), down('c')], 0],
  ['is the quarantine that completes the quorum', [quarantined('a', 900), voting('b'), quarantined('c', 300)], 300],
  [
    'is the longer of two quarantines if both are needed',
    [quarantined('a', 900), down('b'), quarantined('c', 300)],
    900,
  ],
  ['is unknown if a master that is down is needed', [voting('a'), down('b'), down('c')], undefined],
  ['is unknown if no master votes', [down('a')], undefined],
])('The time until a quorum votes %s', (_, masters, expected) =>
  expect(quorumWithin(summaryOf(...masters))).toBe(expected),
);

const OWNER = { keys: ['a'], token: 't', ttl: 1_000, since: 0 };
const REQUESTS: Readonly<Record<'acquire' | 'extend' | 'probe' | 'release' | 'inspect', MasterRequest>> = {
  acquire: { ...OWNER, op: 'acquire', withdrawn: false },
  extend: { ...OWNER, op: 'extend', withdrawn: false },
  probe: { op: 'probe', keys: ['p'] },
  release: { ...OWNER, op: 'release', queues: ['q'], keepFor: 0 },
  inspect: { op: 'inspect', keys: ['a'] },
};

const refusal = (code: string, reason = 'it says so'): MasterReply => ({ kind: 'refused', code, reason });

function setUp() {
  const clock = new TestClock();
  const inner = new ScriptedMaster(clock, 'm1');
  const events: string[] = [];
  const observer = {
    masterRefused: (name: string, reason: string) => events.push(`${name} refused: ${reason}`),
    masterVotesAgain: (name: string) => events.push(`${name} votes again`),
  };
  const master = new CircuitBreakerMaster(inner, clock, 50, observer, () => undefined);
  const ask = (op: keyof typeof REQUESTS, answer: MasterReply): void => {
    inner.behaviour = says(answer);
    master.ask(REQUESTS[op], () => undefined);
  };
  const status = () => summarize('web:1', [master.status()]);
  return { inner, master, events, ask, status };
}

describe('A master that refuses what locks need', () => {
  it.each<[code: string, reason?: string]>([
    ...['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOAUTH', 'BUSY'].map((code): [string] => [code]),
    ['NOPERM', "this user has no permissions to run the 'set' command"],
    ['NOPERM', "this user has no permissions to run the 'set' command or its subcommand"],
    ['NOPERM', "The user executing the script can't run this command or subcommand"],
  ])('is refused in the status, which is reported once, and still asked: %s', (code, said = 'it says so') => {
    const { inner, master, events, ask, status } = setUp();
    for (const op of ['acquire', 'extend', 'probe'] as const) ask(op, refusal(code, said));
    expect([inner.asked.length, master.isUsable]).toEqual([3, true]);
    const reason = `${code} ${said}`;
    expect(events).toEqual([`m1 refused: ${reason}`]);
    expect(status()).toMatchObject({ canVote: false, masters: [{ state: 'refused', reason }] });
  });

  it('has the reason of its last refusal, and votes again, reported once, when it writes for a lock', () => {
    const { events, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    ask('acquire', refusal('READONLY'));
    expect(status().masters[0]!.reason).toBe('READONLY it says so');
    expect(events).toHaveLength(1);
    events.length = 0;
    ask('acquire', granted);
    ask('acquire', granted);
    expect(events).toEqual(['m1 votes again']);
    expect(status()).toMatchObject({ canVote: true, masters: [{ state: 'voting' }] });
    ask('probe', refusal('READONLY'));
    expect(events.slice(1)).toEqual(['m1 refused: READONLY it says so']);
  });

  it('is refused if its restart gate fails, whatever was asked, until the gate answers', () => {
    const { events, ask, status } = setUp();
    ask('extend', { kind: 'refused', code: 'WRONGTYPE', reason: 'foreign', isVital: true, isAtGate: true });
    expect(status()).toMatchObject({ canVote: false, masters: [{ state: 'refused', reason: 'WRONGTYPE foreign' }] });
    ask('acquire', { kind: 'quarantined', reason: 'waits', remaining: 1 });
    expect(status().masters[0]!.state).toBe('voting');
    expect(events).toEqual(['m1 refused: WRONGTYPE foreign', 'm1 votes again']);
  });

  it('stays refused when it grants what needs no memory, until it grants a probe', () => {
    const { events, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    events.length = 0;
    for (const op of ['acquire', 'extend', 'release', 'inspect'] as const) ask(op, granted);
    ask('acquire', held);
    expect(status().canVote).toBe(false);
    ask('probe', granted);
    expect(events).toEqual(['m1 votes again']);
  });

  it('has a state that says more if there is one, except for a quarantine, which would end', () => {
    const { inner, ask, status } = setUp();
    ask('acquire', refusal('OOM'));
    inner.known = { quarantine: { reason: 'waits 0.9 s after a restart', remaining: 900 } };
    expect(status().masters[0]).toEqual({ master: 'm1', state: 'refused', reason: 'OOM it says so' });
    inner.trouble = { kind: 'unreachable', reason: 'gone', sent: false };
    expect(status().masters[0]).toMatchObject({ state: 'down', reason: 'gone' });
  });
});

it.each<[string, keyof typeof REQUESTS, MasterReply]>([
  ['a key of another type', 'acquire', refusal('WRONGTYPE')],
  ['data that was lost', 'probe', refusal('UNMARKED')],
  [
    'no permission for a key, in Redis 6',
    'acquire',
    refusal('NOPERM', 'this user has no permissions to access one of the keys used as arguments'),
  ],
  [
    'no permission for a key, in Redis 7',
    'acquire',
    refusal('NOPERM', "The user executing the script can't access at least one of the keys mentioned in the command"),
  ],
  ['of a request that does not write for a lock', 'release', refusal('OOM')],
  ['of a request that only reads', 'inspect', refusal('NOAUTH')],
])('A refusal that says nothing about other locks leaves the master voting: %s', (_, op, answer) => {
  const { events, ask, status } = setUp();
  ask(op, answer);
  expect(events).toEqual([]);
  expect(status().canVote).toBe(true);
});

/** Masters that lead to these runs of servers, the oldest connection first. */
function rigOf(...runs: (string | undefined)[]): Rig {
  const rig = new Rig();
  runs.forEach((_, index) => lead(rig, index, runs[index]));
  return rig;
}

/** A new connection of a master leads to this run. */
function lead(rig: Rig, index: number, run: string | undefined): void {
  const master = rig.masters[index]!;
  master.known = { run };
  master.becomeReady();
}

async function asked(rig: Rig): Promise<number[]> {
  rig.forget();
  await (await rig.lock('a')).release();
  return rig.counts('acquire');
}

// Protocol 8.5
describe('A server under two addresses', () => {
  it('has one vote: it is no quorum of three', async () => {
    const rig = rigOf('one', 'other', 'one');
    rig.masters[1]!.behaviour = says(unreachable);
    const attempt = await rig.outcomeOf(rig.acquire('a', { wait: 0 }));
    expect(attempt.reason).toBeInstanceOf(QuorumUnavailableError);
    expect((attempt.reason as Error).message).toContain('it is the same server as m1');
  });

  it('is not assumed where no server says which one it is', async () =>
    expect(await asked(rigOf(undefined, undefined, undefined))).toEqual([1, 1, 1]));

  it('keeps its vote over the older connection, in whatever order the masters were given', async () => {
    const rig = rigOf('one', 'other', 'third');
    lead(rig, 0, 'third');
    expect(await asked(rig)).toEqual([0, 1, 1]);
    expect(rig.redlock.masters.status().masters[0]).toMatchObject({
      state: 'refused',
      reason: 'it is the same server as m3',
    });
  });

  it('gets its vote over the younger connection when the older one is lost', async () => {
    const rig = rigOf('one', 'other', 'third');
    lead(rig, 0, 'third');
    rig.masters[2]!.trouble = unreachable;
    // Any master that becomes ready shows it.
    lead(rig, 1, 'other');
    expect((await asked(rig))[0]).toBe(1);
    lead(rig, 2, 'third');
    expect(await asked(rig)).toEqual([1, 1, 0]);
  });

  it('ends a boot with an error that names both masters', async () => {
    const rig = rigOf('one', 'other', 'one');
    const boot = await rig.outcomeAfter(2_000, rig.redlock.masters.connect(1_000));
    expect(boot.reason).toBeInstanceOf(RedlockConfigError);
    expect((boot.reason as Error).message).toContain(
      'masters must be an independent server: it is the same server as m1, got "m3"',
    );
  });
});
