import { describe, expect, it } from '@jest/globals';
import { CircuitBreakerMaster } from '../../../lib/masters/circuit-breaker-master.js';
import { IdleCheck, measureRoundTrips, warningOfRoundTrips } from '../../../lib/masters/connect.js';
import type { AcquireRequest, MasterReply, ReleaseRequest } from '../../../lib/masters/master.interface.js';
import { acquiring } from '../../support/ask.js';
import { Rig } from '../support/rig.js';
import {
  type Behaviour,
  cutOff,
  granted,
  hangs,
  obeys,
  only,
  refused,
  says,
  ScriptedMaster,
  tellsAfter,
  unreachable,
} from '../support/scripted-master.js';
import { TestClock } from '../support/test-clock.js';

const TIMEOUT = 50;

function setUp(behaviour: Behaviour = obeys) {
  const clock = new TestClock();
  const inner = new ScriptedMaster(clock, 'm1');
  inner.behaviour = behaviour;
  const events: string[] = [];
  const observer = {
    masterSilent: (name: string) => events.push(`${name} silent`),
    masterAnswersAgain: (name: string) => events.push(`${name} again`),
  };
  const master = new CircuitBreakerMaster(inner, clock, TIMEOUT, observer, () => undefined);
  let tokens = 0;
  const acquire = (): AcquireRequest => acquiring(['a'], `${++tokens}`, { ttl: 1_000 });
  const release = (token: string, keepFor = 0, ttl = 5_000): ReleaseRequest => ({
    ...{ op: 'release', keys: ['a'], queues: ['queue of a'], token, keepFor, ttl },
  });
  const answers: MasterReply[] = [];
  const ask = (request: AcquireRequest | ReleaseRequest = acquire()): void =>
    master.ask(request, (answer) => answers.push(answer));
  /** Makes the master fall silent. */
  const fallSilent = async (): Promise<void> => {
    inner.behaviour = hangs;
    for (let i = 0; i < 3; i++) ask();
    await clock.advance(TIMEOUT);
  };
  /** Answers the requests of `fallSilent`, and all later ones. */
  const answer = async (): Promise<void> => {
    inner.behaviour = obeys;
    for (const { reply } of inner.asked.slice(0, 3)) reply(granted);
    await clock.settle();
  };
  /** Connects it again, and lets it answer from then on. */
  const reconnect = (): void => {
    inner.behaviour = obeys;
    inner.becomeReady();
  };
  return { clock, inner, master, events, answers, ask, release, fallSilent, answer, reconnect };
}

async function setUpSilent() {
  const stage = setUp();
  await stage.fallSilent();
  return stage;
}

// Protocol 4.7
describe('A master that stops answering', () => {
  it('receives no more requests after a few, and counts as timed out at once', async () => {
    const { inner, events, answers, ask } = await setUpSilent();
    expect(events).toEqual(['m1 silent']);
    for (let i = 0; i < 1_000; i++) ask();
    expect([inner.asked.length, answers.length, answers[0]]).toEqual([3, 1_000, { kind: 'timeout', sent: false }]);
  });

  it('is reported to observers with each request that it is not asked', async () => {
    const clock = new TestClock();
    const inner = new ScriptedMaster(clock, 'm1');
    inner.behaviour = hangs;
    const heard: unknown[] = [];
    const observer = { masterAnswered: (...event: unknown[]): void => void heard.push(event) };
    const master = new CircuitBreakerMaster(inner, clock, TIMEOUT, observer, () => undefined);
    for (let i = 0; i < 3; i++) master.ask(acquiring(['a'], `${i}`, { ttl: 1_000 }), () => undefined);
    await clock.advance(TIMEOUT);
    expect(heard).toEqual([]);
    master.ask(acquiring(['a'], 'unasked', { ttl: 1_000 }), () => undefined);
    expect(heard).toEqual([['m1', 'acquire', { kind: 'timeout', sent: false }, 0]]);
  });

  it('is probed once a second, with a request that can take effect late without harm', async () => {
    const { clock, inner, ask } = await setUpSilent();
    const before = inner.asked.length;
    for (let i = 0; i < 500; i++) {
      await clock.advance(10);
      ask();
    }
    const probes = inner.asked.slice(before).map(({ request }) => request);
    expect(probes).toEqual(Array(5).fill({ op: 'inspect', keys: ['a'] }));
  });

  it('is not silent as long as it answers, however slowly', async () => {
    const { clock, events, ask } = setUp(tellsAfter(200));
    for (let i = 0; i < 200; i++) {
      await clock.advance(10);
      ask();
    }
    // Only the silence before the first answer may have been noticed.
    expect(events.slice(-1)).not.toEqual(['m1 silent']);
  });

  it('does not count as silent after an idle time', async () => {
    const { clock, inner, events, ask } = setUp();
    ask();
    await clock.advance(3_600_000);
    for (let i = 0; i < 10; i++) ask();
    await clock.settle();
    expect([inner.asked.length, events]).toEqual([11, []]);
  });

  it('does not count as silent for a process that computes in blocks, whether in the turns of its requests or after them', async () => {
    const { clock, inner, events, ask } = setUp();
    inner.behaviour = (_, reply) =>
      clock.afterTurn(() => {
        const due = clock.now + 30;
        const arrive = (): void => {
          if (clock.now >= due) clock.arrived.push(() => reply(granted));
          else clock.schedule(1, arrive).unref();
        };
        arrive();
      });
    for (let i = 0; i < 100; i++) {
      for (let j = 0; j < 3; j++) ask();
      if (i % 2 === 0) clock.stall(20 + ((i * 37) % 280));
      await clock.settle();
      if (i % 2 === 1) clock.stall(20 + ((i * 37) % 280));
      await clock.advance(10);
    }
    expect(events).toEqual([]);
  });

  it('receives all requests again once it has answered', async () => {
    const { inner, events, answers, ask, answer, clock } = await setUpSilent();
    await answer();
    expect(events).toEqual(['m1 silent', 'm1 again']);
    const before = answers.length;
    ask();
    await clock.settle();
    expect([inner.asked.length, answers.length]).toEqual([4, before + 1]);
  });
});

// Protocol 4.7
describe('A release for a silent master', () => {
  // The request that it undoes may take effect only then.
  it('is delivered once, as soon as it answers again, however late', async () => {
    const { clock, inner, ask, release, answer } = await setUpSilent();
    ask(release('1', 0, 500));
    ask(release('2', 0, 500));
    await clock.advance(3_600_000);
    expect(inner.requests('release')).toEqual([]);
    await answer();
    ask();
    inner.becomeReady();
    await clock.settle();
    expect(inner.requests('release').map(({ token }) => token)).toEqual(['1', '2']);
  });

  it('keeps the key only for the rest of its time', async () => {
    const { clock, inner, ask, release, answer } = await setUpSilent();
    ask(release('rest', 800));
    ask(release('over', 300));
    await clock.advance(500);
    await answer();
    expect(inner.requests('release').map(({ keepFor }) => keepFor)).toEqual([300, 0]);
  });

  it('is forgotten if it only asked for a reply', async () => {
    const { inner, ask, release, answer } = await setUpSilent();
    ask(release('1', 0, 0));
    ask(release('2', 0, 500));
    await answer();
    expect(inner.requests('release').map(({ token }) => token)).toEqual(['2']);
  });
});

describe('A release for a master without a connection', () => {
  it.each([unreachable, cutOff])('is delivered after a reconnect ($reason)', async (answer) => {
    const { inner, ask, release, answers, clock, reconnect } = setUp(says(answer));
    ask(release('1', 700));
    expect(answers).toEqual([answer]);
    await clock.advance(100);
    reconnect();
    expect(inner.requests('release').map(({ token, keepFor }) => [token, keepFor])).toEqual([
      ['1', 700],
      ['1', 600],
    ]);
  });

  it('is tried once a second while the master answers for other keys only', async () => {
    const { clock, inner, ask, release, reconnect } = setUp(only('release', says(unreachable)));
    ask(release('1'));
    for (let i = 0; i < 100; i++) {
      ask();
      await clock.advance(20);
    }
    expect(inner.requests('release').length).toBeGreaterThan(1);
    expect(inner.requests('release').length).toBeLessThanOrEqual(4);
    reconnect();
    const sent = inner.requests('release').length;
    inner.becomeReady();
    expect(inner.requests('release')).toHaveLength(sent);
  });

  it('is delivered at once when a silent master answers again, although it was tried a moment before', async () => {
    const { clock, inner, ask, release, fallSilent, answer } = setUp(only('release', says(unreachable)));
    ask(release('1'));
    ask();
    await clock.settle();
    expect(inner.requests('release')).toHaveLength(2);
    inner.asked.length = 0;
    await fallSilent();
    await answer();
    expect(inner.requests('release').map(({ token }) => token)).toEqual(['1']);
  });

  it.each([
    [500, ['old', 'young']],
    [501, ['young']],
  ])(
    'is kept as long as there may be something left to release, also while others come: %i ms',
    async (after, left) => {
      const { clock, inner, ask, release, reconnect } = setUp(says(unreachable));
      ask(release('old', 0, 500));
      await clock.advance(after);
      ask(release('young', 0, 500));
      inner.asked.length = 0;
      reconnect();
      expect(inner.requests('release').map(({ token }) => token)).toEqual(left);
    },
  );

  it('does not pile up: expired releases make room', () => {
    const { clock, master, ask, release } = setUp(says(unreachable));
    for (let i = 0; i < 10_000; i++) {
      clock.stall(1);
      ask(release(`${i}`, 0, 100));
    }
    expect((master as unknown as { owed: Map<string, unknown> }).owed.size).toBeLessThanOrEqual(102);
  });

  it('is kept when the new connection breaks, too, and its time counts from the start', async () => {
    const { inner, ask, release, clock, reconnect } = setUp(says(cutOff));
    ask(release('1', 700, 1_000));
    await clock.advance(300);
    inner.becomeReady();
    await clock.advance(300);
    reconnect();
    expect(inner.requests('release').map(({ keepFor }) => keepFor)).toEqual([700, 400, 100]);
    await clock.settle();
    inner.behaviour = says(cutOff);
    ask(release('2', 0, 1_000));
    await clock.advance(600);
    inner.becomeReady();
    await clock.advance(600);
    inner.becomeReady();
    expect(inner.requests('release').filter(({ token }) => token === '2')).toHaveLength(2);
  });

  it('is sent once more when the master is closed, and then forgotten', async () => {
    const { inner, master, ask, release } = setUp(says(unreachable));
    ask(release('1'));
    await master.close();
    inner.becomeReady();
    expect([inner.requests('release').length, inner.closed]).toEqual([2, true]);
  });
});

it.each<[string, number[], string | undefined]>([
  ['nothing is slow', [1, 2, 49.9], undefined],
  ['nothing was measured', [], undefined],
  [
    'a minority is slow',
    [1, 2, 80.2],
    "masterTimeout (50 ms) is too short: m3 in 81 ms at the fastest, so their votes do not count; set masterTimeout to '250ms' or more",
  ],
  [
    'a majority is slow',
    [1, 50, 90],
    "masterTimeout (50 ms) is too short: m2 in 50 ms, m3 in 90 ms at the fastest, so no lock can be taken; set masterTimeout to '300ms' or more",
  ],
])('A warning of a short masterTimeout has the numbers and the value to set: %s', (_, fastest, text) => {
  const trips = fastest.map((time, i) => ({ master: `m${i + 1}`, fastest: time }));
  expect(warningOfRoundTrips(trips, 50, 3)).toBe(text);
});

it('The measurement of round trips asks a fast master once, a slow one three times, and one without a connection never', async () => {
  const rig = new Rig({ masters: 3 });
  const [fast, slow, dead] = rig.masters;
  dead!.trouble = { kind: 'unreachable', reason: 'gone', sent: false };
  const asked = new Map<string, number>();
  const delays = [90, 60, 70];
  for (const master of [fast!, slow!]) {
    master.ask = (_, reply) => {
      const times = asked.get(master.name) ?? 0;
      asked.set(master.name, times + 1);
      rig.clock.schedule(master === slow ? (delays[times] ?? 0) : 1, () => reply(granted));
    };
  }
  const trips = rig.follow(measureRoundTrips(rig.masters, { key: 'k', clock: rig.clock, enough: 50 }));
  await rig.clock.advance(1_000);
  expect(trips.value).toEqual([
    { master: 'm1', fastest: 1 },
    { master: 'm2', fastest: 60 },
  ]);
  expect([...asked]).toEqual([
    ['m1', 1],
    ['m2', 3],
  ]);
  expect(rig.clock.pendingTimers).toBe(0);
});

it.each<[string, Behaviour, string]>([
  ['hang', hangs, 'silent'],
  ['refuse writes', says(refused), 'refused'],
])('An idle check lets a process notice masters that %s, and that work again', async (_, behaviour, state) => {
  const rig = new Rig();
  const check = new IdleCheck(rig.clock, () => rig.redlock.masters.ask());
  check.begin();
  await rig.clock.advance(5_000);
  rig.script(2, behaviour);
  await rig.clock.advance(16_000);
  expect(rig.redlock.masters.status()).toMatchObject({
    canVote: false,
    masters: [{ state }, { state }, { state: 'voting' }],
  });
  rig.scriptAll(obeys);
  await rig.clock.advance(5_000);
  expect(rig.redlock.masters.status().canVote).toBe(true);
  expect(rig.keys).toEqual([0, 0, 0]);
  check.end();
  expect(rig.clock.pendingTimers).toBe(0);
});
